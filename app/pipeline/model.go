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
	return d.mapped(func(config Config) Config {
		ask, ok := config.(*AI)
		if !ok {
			return config
		}
		changed := *ask
		changed.Models = []string{model}
		return &changed
	})
}

// WithRequester is the document with every review, however deep, allowing whoever started
// the run to decide. d itself is left as it is; what does not change is shared.
func (d Document) WithRequester() Document {
	return d.mapped(func(config Config) Config {
		ask, ok := config.(*Review)
		if !ok {
			return config
		}
		changed := *ask
		changed.AllowRequester = true
		return &changed
	})
}

// mapped is the document with what change makes of each step's configuration.
func (d Document) mapped(change func(Config) Config) Document {
	d.Steps = mappedSteps(d.Steps, change)
	return d
}

func mappedSteps(steps []Step, change func(Config) Config) []Step {
	out := slices.Clone(steps)
	for i := range out {
		out[i].With = mappedConfig(out[i].With, change)
		out[i].OnError = slices.Clone(out[i].OnError)
		for k := range out[i].OnError {
			out[i].OnError[k].Steps = mappedSteps(out[i].OnError[k].Steps, change)
			if asked := out[i].OnError[k].Ask; asked != nil {
				out[i].OnError[k].Ask, _ = change(asked).(*Review)
			}
		}
	}
	return out
}

// mappedConfig knows every kind that lists steps, which a test walks through.
func mappedConfig(config Config, change func(Config) Config) Config {
	switch c := config.(type) {
	case *Branch:
		changed := *c
		changed.Otherwise = mappedSteps(c.Otherwise, change)
		changed.Cases = slices.Clone(c.Cases)
		for i := range changed.Cases {
			changed.Cases[i].Steps = mappedSteps(changed.Cases[i].Steps, change)
		}
		return &changed
	case *Repeat:
		changed := *c
		changed.Steps = mappedSteps(c.Steps, change)
		return &changed
	case *Each:
		changed := *c
		changed.Steps = mappedSteps(c.Steps, change)
		return &changed
	case *Parallel:
		changed := *c
		changed.Branches = slices.Clone(c.Branches)
		for i := range changed.Branches {
			changed.Branches[i].Steps = mappedSteps(changed.Branches[i].Steps, change)
		}
		return &changed
	}
	return change(config)
}
