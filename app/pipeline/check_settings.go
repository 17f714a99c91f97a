package pipeline

import "strings"

// unsupported lists the settings of runnable kinds that this build cannot act on.
// A setting that would silently do nothing is refused instead.
var unsupported = []struct {
	field, says string
	set         func(Config) bool
}{
	{"with.send_back", "sending back for another round", func(c Config) bool { w, ok := c.(*Review); return ok && w.SendBack }},
	{"with.proof", "a code in addition to the link", func(c Config) bool { w, ok := c.(*Review); return ok && w.Proof == ProofLinkCode }},
}

// The words are those of the setting, not of the code that lacks.
func (c *checker) settings(n *Node) {
	c.settingsOf(n, "with.", n.Step.With)
}

// settingsOf looks at the settings that sit at prefix.
func (c *checker) settingsOf(n *Node, prefix string, with Config) {
	for _, s := range unsupported {
		if s.set(with) {
			c.blocks(n, prefix+strings.TrimPrefix(s.field, "with."), "%s cannot be run by this version of the product. Choose something else.", s.says)
		}
	}
}
