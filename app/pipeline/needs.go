package pipeline

import "slices"

// Needs is what a pipeline needs around it in order to run: people, other senders of
// events, secrets. What it starts with is its input, and the models are Models.
type Needs struct {
	People  []Person        // who is asked, each once
	Mail    bool            // it sends mail
	Events  []ExpectedEvent // sent by other runs, systems or people
	Secrets []string        // names
}

// ExpectedEvent is an event that a step waits for.
type ExpectedEvent struct {
	Name, Key string // Key is a text
	Step      string // name of the step
}

// Needs lists what the document's steps need, in the order in which people read them.
func (d Document) Needs() Needs {
	var out Needs
	ask := func(people []Person) {
		for _, one := range people {
			if !slices.Contains(out.People, one) {
				out.People = append(out.People, one)
			}
		}
	}
	for _, n := range grow(&d).all {
		switch w := n.Step.With.(type) {
		case *AI:
			ask(w.Ask)
		case *Review:
			ask(w.People)
		case *Repeat:
			ask(w.Ask)
		case *HTTP:
			ask(w.Ask)
			out.Secrets = append(out.Secrets, w.Secrets()...)
		case *Email:
			out.Mail = true
		case *Event:
			out.Events = append(out.Events, ExpectedEvent{w.Name, w.Key, n.Step.Name})
		}
		for _, k := range n.Step.OnError {
			if k.Ask != nil {
				ask(k.Ask.People)
			}
		}
	}
	slices.Sort(out.Secrets)
	out.Secrets = slices.Compact(out.Secrets)
	return out
}
