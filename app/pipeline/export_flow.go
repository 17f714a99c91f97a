package pipeline

import (
	"encoding/json"
	"strconv"
)

// flow is the task of a step that holds other steps, or waits for an event.
func (x *exporter) flow(s *Step) task {
	switch w := s.With.(type) {
	case *Branch:
		return x.branch(s.ID, w)
	case *Repeat:
		return x.repeat(s.ID, w)
	case *Each:
		x.lose(s.ID, "It goes through its items one after the other, none of them may fail, and the list of their results has to be put together.")
		return task{"for": task{"each": "item", "at": "index", "in": x.formula(s.ID, w.Items)}, "do": x.list(w.Steps)}
	case *Parallel:
		var lanes []any
		for i := range w.Branches {
			lanes = append(lanes, task{w.Branches[i].ID: task{"do": x.list(w.Branches[i].Steps)}})
		}
		x.lose(s.ID, "The results of its branches have to be put together (%s).", either(w.Combine, CombineCollect))
		return task{"fork": task{"branches": lanes, "compete": w.WaitFor == WaitFirst}}
	case *Event:
		return x.event(s.ID, w)
	}
	x.lose(s.ID, "Its kind is not known and was left out.")
	return task{"do": []any{}}
}

// branch decides by a switch that leads to one of the lists behind it, and out.
func (x *exporter) branch(id string, w *Branch) task {
	var cases, lists []any
	for i := range w.Cases {
		k := &w.Cases[i]
		cases = append(cases, task{k.ID: task{"when": x.formula(id, k.When), "then": "case_" + k.ID}})
		lists = append(lists, task{"case_" + k.ID: task{"do": x.list(k.Steps), "then": "exit"}})
	}
	cases = append(cases, task{"otherwise": task{"then": "otherwise"}})
	lists = append(lists, task{"otherwise": task{"do": x.list(w.Otherwise), "then": "exit"}})
	return task{"do": append([]any{task{"decide": task{"switch": cases}}}, lists...)}
}

// repeat goes through rounds while the end condition, looked at behind each, does not hold.
func (x *exporter) repeat(id string, w *Repeat) task {
	done := id + "_done"
	rounds := append(x.list(w.Steps), task{done: task{"set": task{"done": x.formula(id, w.Until)}, "export": kept(done)}})
	x.lose(id, "Its limits of money and time, and what it does at a limit (%s), are not kept, and what it gives (rounds, reason, best) has to be put together.", w.AtLimit)
	return task{
		"for":   task{"each": "round", "in": "${ [range(1; " + strconv.Itoa(w.MaxRounds+1) + ")] }"},
		"while": `${ $context["` + done + `"]["done"] != true }`, "do": rounds,
	}
}

// event listens for one event; where its time is up, what comes depends on the step.
func (x *exporter) event(id string, w *Event) task {
	filter := task{"with": task{"type": w.Name}}
	switch {
	case w.Callback:
		x.lose(id, "The address at which another system answers is not kept.")
	case w.Key != "":
		filter["correlate"] = task{"key": task{"from": "${ .subject }", "expect": x.text(id, w.Key)}}
	}
	listen := task{"listen": task{"to": task{"one": filter}}, "export": task{"as": `${ ($context // {}) + {"` + id + `": {"outcome": "received", "data": (. | if type == "array" then first else . end)}} }`}}
	if w.Deadline == nil {
		return listen
	}
	listen["timeout"] = after(*w.Deadline)
	if w.OnDeadline != DeadlineContinue {
		return listen
	}
	late := task{"set": task{"outcome": "timeout", "data": nil}, "export": kept(id)}
	return task{
		"try": []any{task{"listen": listen}}, "export": task{"as": "${ $context }"},
		"catch": task{"errors": task{"with": task{"type": "https://serverlessworkflow.io/spec/1.0.0/errors/timeout"}}, "do": []any{task{"late": late}}},
	}
}

// caught is a task with one entry of on_error around it.
func (x *exporter) caught(s *Step, k *Catch, inner task) task {
	catch := task{"as": "error"}
	if k != &s.OnError[0] {
		x.lose(s.ID, "What is done about one failure may fail itself; then the entries behind it handle that.")
	}
	if len(k.Classes) > 0 {
		var types []string
		for _, class := range k.Classes {
			types = append(types, exceptionType(class))
		}
		x.lose(s.ID, "Failures that no step of it raises have other names there; they are looked for as %s.", quoted(k.Classes))
		list, _ := json.Marshal(types) // texts always encode
		catch["when"] = "${ $error.type as $t | " + string(list) + " | index($t) != null }"
	}
	switch k.Do {
	case CatchSteps:
		catch["do"] = x.list(k.Steps)
	case CatchDefault:
		catch["do"] = []any{task{"default": task{"set": task{"value": k.Default}, "export": task{"as": `${ ($context // {}) + {"` + s.ID + `": .value} }`}}}}
	case CatchAsk:
		catch["do"] = []any{task{"ask": x.ask(s.ID, k.Ask)}}
	case CatchFail:
		name := k.Exception
		if name == "" {
			name = "failed"
		}
		catch["do"] = []any{task{"fail": task{"raise": task{"error": task{"type": exceptionType(name), "status": 500, "title": name, "detail": x.text(s.ID, k.Message)}}}}}
	}
	return task{"try": []any{task{s.ID + "_try": inner}}, "catch": catch, "export": task{"as": "${ $context }"}}
}
