package jobs

import (
	"context"
	"net/http"

	"tollgate/app/engine"
	"tollgate/app/expr"
	"tollgate/app/pipeline"
)

// lookUp finds out whether an earlier try arrived. It reports false where it did not, so
// that the call is to be made; else the reply is the step's, be it that the look-up itself
// failed.
func (c *httpCall) lookUp(ctx context.Context) (bool, engine.Reply) {
	got, reply := c.exchange(ctx, pipeline.MaxHTTPAnswer, c.lookUpRequest)
	if reply != nil {
		return true, lookUpFailed(*reply)
	}
	if m := statusMeanings(got.status); m.class == classAuth || m.again != never || got.broken != nil {
		return true, lookUpFailed(c.refused(got))
	}
	answer := c.loosely(got)
	arrived, err := c.holds(ctx, answer)
	if err != nil {
		return true, lookUpFailed(*refusal(engine.ClassFormula, err.Error()))
	}
	if !arrived {
		return false, engine.Reply{}
	}
	body, err := c.value(ctx, answer)
	if err != nil {
		return true, lookUpFailed(*refusal(engine.ClassFormula, err.Error()))
	}
	output, err := c.output(got, body)
	if err != nil {
		return true, lookUpFailed(*refusal(engine.ClassTooLarge, "What was found is larger than a step may hand on."))
	}
	return true, engine.Reply{Output: output, Note: "We looked it up: the earlier try had arrived, so it was not sent again."}
}

// lookUpFailed leaves open what was to be found out.
func lookUpFailed(reply engine.Reply) engine.Reply {
	reply.Unsure, reply.Retryable = true, true
	reply.Failure.Message = "Whether an earlier try had arrived could not be looked up, so nothing was sent. " + reply.Failure.Message
	return reply
}

func (c *httpCall) lookUpRequest(ctx context.Context) (*http.Request, *engine.Reply) {
	req, reply := c.plainRequest(ctx, http.MethodGet, c.input.LookUp.URL, nil)
	if reply != nil {
		return nil, reply
	}
	return req, c.authorize(ctx, req)
}

// loosely reads an answer as JSON where it is, and as text where it is not.
func (c *httpCall) loosely(got answer) map[string]any {
	var body any
	if value, err := expr.DecodeJSONLimit(got.body, pipeline.MaxHTTPAnswer); err == nil {
		body = c.masks.Value(value)
	} else if len(got.body) > 0 {
		body = c.masks.Text(expr.Plain(string(got.body)))
	}
	return map[string]any{"status": whole(int64(got.status)), "headers": c.headers(got.header), "body": body}
}

func (c *httpCall) holds(ctx context.Context, answer map[string]any) (bool, error) {
	formula, err := expr.Compile(c.input.LookUp.Arrived)
	if err != nil {
		return false, err
	}
	return formula.Bool(ctx, expr.Scope{"answer": answer})
}

// value is what the step goes on with once the call is known to have arrived.
func (c *httpCall) value(ctx context.Context, answer map[string]any) (any, error) {
	if c.input.LookUp.Value == "" {
		return answer["body"], nil
	}
	formula, err := expr.Compile(c.input.LookUp.Value)
	if err != nil {
		return nil, err
	}
	return formula.Eval(ctx, expr.Scope{"answer": answer})
}
