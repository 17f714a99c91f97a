package pipeline

import "slices"

// Models lists the models that the document's ai steps name, each once, in the order
// in which people read them.
func (d Document) Models() []string {
	var out []string
	for _, n := range grow(&d).all {
		ask, ok := n.Step.With.(*AI)
		if !ok {
			continue
		}
		for _, model := range ask.Models {
			if !slices.Contains(out, model) {
				out = append(out, model)
			}
		}
	}
	return out
}

// WithModel is the document with every ai step, however deep, asking this one model in
// place of all that it names. d itself is left as it is; what does not change is shared.
func (d Document) WithModel(model string) Document {
	d.Steps = stepsWithModel(d.Steps, model)
	return d
}

func stepsWithModel(steps []Step, model string) []Step {
	out := slices.Clone(steps)
	for i := range out {
		out[i].With = configWithModel(out[i].With, model)
		out[i].OnError = slices.Clone(out[i].OnError)
		for k := range out[i].OnError {
			out[i].OnError[k].Steps = stepsWithModel(out[i].OnError[k].Steps, model)
		}
	}
	return out
}

// configWithModel knows every kind that lists steps, which a test walks through.
func configWithModel(config Config, model string) Config {
	switch c := config.(type) {
	case *AI:
		changed := *c
		changed.Models = []string{model}
		return &changed
	case *Branch:
		changed := *c
		changed.Otherwise = stepsWithModel(c.Otherwise, model)
		changed.Cases = slices.Clone(c.Cases)
		for i := range changed.Cases {
			changed.Cases[i].Steps = stepsWithModel(changed.Cases[i].Steps, model)
		}
		return &changed
	case *Repeat:
		changed := *c
		changed.Steps = stepsWithModel(c.Steps, model)
		return &changed
	case *Each:
		changed := *c
		changed.Steps = stepsWithModel(c.Steps, model)
		return &changed
	case *Parallel:
		changed := *c
		changed.Branches = slices.Clone(c.Branches)
		for i := range changed.Branches {
			changed.Branches[i].Steps = stepsWithModel(changed.Branches[i].Steps, model)
		}
		return &changed
	}
	return config
}
