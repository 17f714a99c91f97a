package pipeline

import (
	"encoding/json"
	"reflect"
	"time"
)

// task is one task of the DSL.
type task = map[string]any

// list writes steps as named tasks, in order.
func (x *exporter) list(steps []Step) []any {
	out := []any{}
	for i := range steps {
		out = append(out, task{steps[i].ID: x.step(&steps[i])})
	}
	return out
}

// step is the task of a step, with what is done about its failures around it.
func (x *exporter) step(s *Step) task {
	t := x.work(s)
	t["metadata"] = task{"title": s.Name, "kind": string(s.Kind), "settings": json.RawMessage(appendValue(nil, reflect.ValueOf(bare(s.With))))}
	if _, given := t["export"]; !given {
		t["export"] = kept(s.ID)
	}
	if s.Timeout != nil {
		t["timeout"] = after(*s.Timeout)
	}
	if s.Retry != nil {
		x.lose(s.ID, "How often a failed try is made again is not kept.")
	}
	for i := range s.OnError {
		t = x.caught(s, &s.OnError[i], t)
	}
	return t
}

// kept puts what a task gave into the context under the step's id.
func kept(id string) task {
	return task{"as": `${ ($context // {}) + {"` + id + `": .} }`}
}

func after(d Duration) task { return task{"after": span8601(d)} }

// span8601 is a time span in the form of the DSL.
func span8601(d Duration) task {
	return task{"seconds": int64(time.Duration(d) / time.Second)}
}

// call asks for a function that the other engine must be given.
func (x *exporter) call(name string, with task) task {
	if x.calls == nil {
		x.calls = map[string]bool{}
	}
	x.calls[name] = true
	return task{"call": name, "with": with}
}

// work is what the step itself does.
func (x *exporter) work(s *Step) task {
	switch w := s.With.(type) {
	case *AI:
		if len(w.Files) > 0 {
			x.lose(s.ID, "The files that it reads are not kept.")
		}
		return x.call("askAI", task{
			"models": w.Models, "instructions": x.text(s.ID, w.Instructions), "prompt": x.text(s.ID, w.Prompt), "answer": inputShape(w.Answer),
		})
	case *Review:
		return x.ask(s.ID, w)
	case *Email:
		return x.mail(s.ID, w)
	case *Set:
		return task{"set": x.values(s.ID, w.Values)}
	case *HTTP:
		return x.http(s.ID, w)
	case *Child:
		x.lose(s.ID, "The pipeline that it runs is named by its id and has to be exported, too.")
		return task{"run": task{"workflow": task{"namespace": "tollgate", "name": w.Pipeline, "version": "1.0.0", "input": x.values(s.ID, w.Input)}, "await": w.Wait}}
	case *Emit:
		with := task{"source": exportHome + "events", "type": w.Name, "data": x.values(s.ID, w.Data)}
		if w.Key != "" {
			with["subject"] = x.text(s.ID, w.Key)
		}
		return task{"emit": task{"event": task{"with": with}}}
	case *Wait:
		if w.For != nil {
			return task{"wait": span8601(*w.For)}
		}
		x.lose(s.ID, "It waits until a date; the DSL waits for a span of time, which has to be worked out.")
		return task{"wait": x.formula(s.ID, w.Until)}
	case *Stop:
		return x.stop(s.ID, w)
	}
	return x.flow(s)
}

func (x *exporter) ask(step string, w *Review) task {
	var people []any
	for _, p := range w.People {
		switch {
		case p.Everyone:
			people = append(people, "everyone who may decide")
		case p.Role != "":
			people = append(people, "role "+p.Role)
		case p.User != "":
			people = append(people, p.User)
		default:
			people = append(people, x.text(step, p.Email))
		}
	}
	facts := []any{}
	for _, f := range w.Facts {
		facts = append(facts, task{"label": f.Label, "value": x.formula(step, f.Formula)})
	}
	fields := task{}
	for _, e := range w.Editable {
		fields[e.Field.Name] = x.formula(step, e.Formula)
	}
	with := task{
		"question": x.text(step, w.Question), "text": x.text(step, w.Body), "facts": facts, "people": people, "fields": fields,
		"policy": string(either(w.Policy.Rule, PolicyAny)), "requesterMayDecide": w.AllowRequester,
	}
	if w.Due != nil {
		with["due"], with["onDeadline"] = span8601(*w.Due), string(either(w.OnDeadline, DeadlineFail))
	}
	return x.call("askPerson", with)
}

func (x *exporter) mail(step string, w *Email) task {
	to := []any{}
	for _, one := range append(append([]string{}, w.To...), w.CC...) {
		to = append(to, x.text(step, one))
	}
	if len(w.Attachments) > 0 {
		x.lose(step, "The files that it attaches are not kept.")
	}
	return x.call("sendMail", task{"to": to, "replyTo": x.text(step, w.ReplyTo), "subject": x.text(step, w.Subject), "text": x.text(step, w.Body)})
}

// http is a call of the DSL's own; who calls stays here, as secrets do.
func (x *exporter) http(step string, w *HTTP) task {
	with := task{"method": w.Method, "endpoint": x.text(step, w.URL), "output": "response"}
	headers, query := task{}, task{}
	for _, h := range w.Headers {
		if h.Secret == "" {
			headers[h.Name] = x.text(step, h.Value)
		}
	}
	for _, q := range w.Query {
		query[q.Name] = x.text(step, q.Value)
	}
	if len(headers) > 0 {
		with["headers"] = headers
	}
	if len(query) > 0 {
		with["query"] = query
	}
	if w.Body != "" {
		with["body"] = x.formula(step, w.Body)
	}
	if len(w.Secrets()) > 0 {
		x.lose(step, "Its secrets are not exported.")
	}
	if w.Sends() {
		x.lose(step, "What happens when nobody can tell whether it arrived is not kept, nor its idempotency key.")
	}
	return task{"call": "http", "with": with}
}

// stop ends the workflow, or raises an error of the exception's name.
func (x *exporter) stop(step string, w *Stop) task {
	if w.Outcome != StopRaise {
		return task{"set": task{"message": x.text(step, w.Message)}, "then": "end"}
	}
	return task{"raise": task{"error": task{
		"type": exceptionType(w.Exception), "status": 500, "title": w.Exception, "detail": x.text(step, w.Message),
	}}}
}

// exceptionType is the address of a kind of failure.
func exceptionType(name string) string { return exportHome + "errors/" + name }
