package pipeline

import "fmt"

// CheckModels tells of every place in an ai step that names a model which cannot be asked.
// fault says why a model cannot, and what to do; empty where it can. Names that are none are
// left to Check.
func CheckModels(d Document, fault func(model string) string) []Problem {
	d = d.Active()
	c := checker{doc: &d, tree: grow(&d)}
	for _, n := range c.tree.all {
		ask, ok := n.Step.With.(*AI)
		if !ok {
			continue
		}
		for i, model := range ask.Models {
			if !modelPattern.MatchString(model) {
				continue
			}
			if says := fault(model); says != "" {
				c.blocks(n, fmt.Sprintf("with.models[%d]", i), "“%s” cannot be asked. %s", shown(model), says)
			}
		}
	}
	return c.problems
}
