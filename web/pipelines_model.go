package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/trigger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// Model is a model that is set up here, so that steps may ask it.
type Model struct {
	ID       string // as steps name it: "openai/gpt-5.6-terra"
	Name     string // for people
	Practice bool   // needs no key and reads nothing
	// OwnKeyOnly tells that only a workspace with a key of its own can call it.
	OwnKeyOnly bool
}

// errChangedSince tells that somebody published after the form was drawn.
var errChangedSince = errors.New("the pipeline was published since")

// modelAnswer is what was chosen in a form that must be shown again, and why.
type modelAnswer struct{ model, fault string }

// changeModel publishes the pipeline with one model for all its steps.
func (s *Server) changeModel(v *visit) error {
	id, err := idParam[pipeline.Pipeline](v, "pipeline")
	if err != nil {
		return err
	}
	model, seen := v.FormValue("model"), v.FormValue("version")
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error { return v.publishModel(ctx, tx, id, model, seen) })
	if invalid, ok := errors.AsType[*tenants.Invalid](err); ok {
		return v.showPipeline(http.StatusUnprocessableEntity, id, modelAnswer{model, invalid.Message})
	}
	if err != nil {
		return err
	}
	return v.redirect(v.path("pipelines", id.String()))
}

// publishModel makes the next version. seen is the version that the form was drawn for,
// so a form works once: sent again it finds the model in place or the version passed by.
func (v *visit) publishModel(ctx context.Context, tx tenants.Tx, id pipeline.ID, model, seen string) error {
	one, err := pipeline.Lock(ctx, tx, id)
	switch {
	case err != nil:
		return err
	case one.Live == 0:
		return engine.ErrNotLive
	case one.Unread != nil:
		return one.Unread
	}
	chosen, err := v.s.modelFor(ctx, tx, model)
	if err != nil {
		return err
	}
	if seen == "" {
		return trigger.ErrNoFormKey
	}
	live, err := pipeline.VersionByNumber(ctx, tx, id, one.Live)
	if err != nil {
		return err
	}
	if asked := live.Document.Models(); len(asked) == 0 || slices.Equal(asked, []string{model}) {
		return nil
	}
	if seen != strconv.Itoa(one.Live) {
		return errChangedSince
	}
	if err := pipeline.SaveDraft(ctx, tx, id, one.Draft.WithModel(model), v.me.User.ID); err != nil {
		return err
	}
	number, err := pipeline.Publish(ctx, tx, id, "Model changed to "+chosen.Name, v.me.User.ID)
	if err != nil {
		return err
	}
	return tenants.Audit(ctx, tx, tenants.Entry{
		Actor: tenants.ByMember(v.me), Action: "pipeline.published", Target: tenants.Target{Kind: "pipeline", ID: id},
		Detail: map[string]any{"version": number, "model": model},
	})
}

// callable are the models that the workspace has a key for, or the installation.
func (s *Server) callable(ctx context.Context, tx tenants.Tx) ([]Model, error) {
	keys, err := tenants.KeysInUse(ctx, tx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(s.Models), func(m Model) bool {
		_, own := keys[providerOf(m.ID)]
		return m.OwnKeyOnly && !own
	}), nil
}

// offered are those of the models that people may choose. What breaks on order is offered
// only where it is asked already.
func offered(models []Model, asked []string) []Model {
	return slices.DeleteFunc(slices.Clone(models), func(m Model) bool {
		return providerOf(m.ID) == breakProvider && !slices.Contains(asked, m.ID)
	})
}

// modelFor finds a model that may be published: set up here, with a key to call it, and
// with a price, since what it costs is held before each call.
func (s *Server) modelFor(ctx context.Context, tx tenants.Tx, id string) (Model, error) {
	models, err := s.callable(ctx, tx)
	if err != nil {
		return Model{}, err
	}
	i := slices.IndexFunc(s.Models, func(m Model) bool { return m.ID == id })
	if i < 0 {
		return Model{}, &tenants.Invalid{Field: "model", Message: "Choose one of the models that are set up here."}
	}
	if !slices.Contains(models, s.Models[i]) {
		return Model{}, &tenants.Invalid{Field: "model",
			Message: "There is no key to call " + s.Models[i].Name + " with. An owner or admin can add one to the provider keys. Or choose another model."}
	}
	priced, err := engine.Priced(ctx, tx)
	if err != nil {
		return Model{}, err
	}
	if !priced(id) {
		return Model{}, &tenants.Invalid{Field: "model",
			Message: "The price of " + s.Models[i].Name + " is not known, so no cap could be kept. Choose another model."}
	}
	return s.Models[i], nil
}

// asked are the models that the live version's steps ask.
func (p pipelineView) asked() []string { return p.Version.Document.Models() }

// modelWords tell which models the steps ask, by the names that people know.
func (p pipelineView) modelWords() ui.Sentence {
	out := ui.Words("Its steps ask ")
	for i, id := range p.asked() {
		if i > 0 {
			out = append(out, ui.Plain(", "))
		}
		known := slices.IndexFunc(p.v.s.Models, func(m Model) bool { return m.ID == id })
		if known < 0 {
			out = append(out, ui.Strong(id), ui.Plain(" (not set up here)"))
			continue
		}
		out = append(out, ui.Strong(p.v.s.Models[known].Name))
	}
	return append(out, ui.Plain("."))
}

func (p pipelineView) mayBuild() bool { return p.v.me.Role.May(tenants.BuildPipelines) }

// choosesModel tells whether there is a choice, and this person may make it.
func (p pipelineView) choosesModel() bool { return p.mayBuild() && len(p.Models) > 1 }

// onlyPractice tells whether no real model is set up.
func (p pipelineView) onlyPractice() bool {
	return !slices.ContainsFunc(p.Models, func(m Model) bool { return !m.Practice })
}

// realModelWords tells what makes a real model callable: a key of the workspace's own, or
// a provider that whoever runs the installation sets up.
func (p pipelineView) realModelWords() ui.Sentence {
	switch {
	case len(p.v.s.keyed()) == 0:
		return ui.Words("This installation has the practice model only. Whoever runs it can set up a provider of real ones.")
	case p.v.me.Role.May(tenants.ManageWorkspace):
		return ui.Sentence{ui.Plain("A real model needs a key at its provider. "), ui.LinkTo("Add one in Provider keys", p.v.path("settings", "keys")), ui.Plain(".")}
	}
	return ui.Words("A real model needs a key at its provider. An owner or an admin can add one.")
}

// modelField offers the models. The one in use is chosen, unless another was sent.
func (p pipelineView) modelField() ui.Field {
	field := ui.Field{
		Kind: ui.ChoiceField, Name: "model", Label: "Ask another model",
		Help:  "All its AI steps will ask the one you choose. Runs in progress stay on their version.",
		Value: p.Answer.model, Error: p.Answer.fault,
	}
	if asked := p.asked(); field.Value == "" && len(asked) == 1 {
		field.Value = asked[0]
	}
	for _, model := range p.Models {
		option := ui.Option{Value: model.ID, Label: model.Name}
		if !p.Priced(model.ID) {
			option.Help = "Its price is not known."
		}
		field.Options = append(field.Options, option)
	}
	return field
}

// modelFaults are what is wrong with the answer, where the form is there to mend it.
func (p pipelineView) modelFaults() []ui.Fault {
	if !p.showsModel() || !p.choosesModel() {
		if p.Answer.fault == "" {
			return nil
		}
		return []ui.Fault{{Message: p.Answer.fault}}
	}
	return ui.Faults(p.modelField())
}

func (p pipelineView) showsModel() bool { return len(p.asked()) > 0 }
