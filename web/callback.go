package web

import (
	"errors"
	"io"
	"net/http"

	"tollgate/app/engine"
	"tollgate/app/expr"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// Where other systems answer waits. The address is all that lets them in.
const callbackPath = engine.CallbackPath + ":callback"

// callbackPage says what the address is for, whatever address it is: looking tells
// nothing and changes nothing.
func (s *Server) callbackPage(v *visit) error {
	return v.page(http.StatusOK, v.alone("An address for another system"), callbackBody())
}

// takeCallback takes the answer of another system and says so in JSON. Every address at
// which nothing waits gets the same words.
func (s *Server) takeCallback(v *visit) error {
	data, err := io.ReadAll(v.Request().Body)
	if err != nil {
		return v.refuseCallback(err)
	}
	if err := s.Engine.AnswerCallback(v.ctx(), v.Param("callback"), data); err != nil {
		return v.refuseCallback(err)
	}
	return v.JSON(http.StatusOK, map[string]string{"status": "received"})
}

// refuseCallback answers in the language of programs.
func (v *visit) refuseCallback(err error) error {
	var large *http.MaxBytesError
	var bad *engine.BadEvent
	var syntax *expr.BadJSON
	say := func(status int, words string) error { return v.JSON(status, map[string]string{"error": words}) }
	switch {
	case errors.Is(err, engine.ErrNoCallback):
		return say(http.StatusNotFound, "Nothing waits for an answer at this address.")
	case errors.As(err, &large):
		return say(http.StatusRequestEntityTooLarge, "The answer is larger than 256 KB. Send less, or where it can be found.")
	case errors.As(err, &bad):
		return say(http.StatusBadRequest, bad.Reason)
	case errors.As(err, &syntax):
		return say(http.StatusBadRequest, "The answer is not JSON that can be read: "+syntax.Error())
	}
	return err
}

// callbackFold shows the address at which the step is answered, to who may answer by hand.
func (p *panelView) callbackFold() ui.Fold {
	step, wait := p.Passage.Step, p.Passage.Wait
	if wait == nil || !engine.IsCallback(wait.EventKey) || !p.r.v.me.Role.May(tenants.StartRuns) {
		return ui.Fold{}
	}
	address := p.r.v.s.Engine.Callbacks.Address(p.r.v.me.Tenant.ID, p.r.View.Run.ID, step.Parent, step.StepID)
	return ui.Fold{ID: "fold-callback", Title: "Address for the answer", Answer: "POST, JSON, once", Open: true,
		Body: ui.Code{ID: "callback", Label: "Address for the answer", Text: address}}
}
