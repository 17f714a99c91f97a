package web

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

func draftCrumbs(d *draftView, here string) []ui.Link {
	return []ui.Link{
		{Text: "Pipelines", Href: d.v.path("pipelines")}, {Text: d.Draft.Name, Href: d.v.path("pipelines", d.Draft.ID.String())},
		{Text: "Edit", Href: d.path()}, {Text: here},
	}
}

// faultList are the faults of a form, each with its field.
func (f *stepForm) faultList() []ui.Fault {
	var out []ui.Fault
	for _, name := range slices.Sorted(maps.Keys(f.faults)) {
		out = append(out, ui.Fault{Anchor: anchor(name), Message: f.faults[name]})
	}
	return out
}

// hidden go with a step's form: its key, what it was drawn for, and which step is next.
func (p stepFormView) hidden() []ui.Hidden {
	hidden := []ui.Hidden{{Name: "key", Value: p.d.Key}, {Name: "seen", Value: p.Seen}}
	if next := p.d.next(p.Node); next != nil {
		hidden = append(hidden, ui.Hidden{Name: "next", Value: next.ID()})
	}
	return hidden
}

// actions save the step, or save it and go on to the next.
func (p stepFormView) actions() ui.Actions {
	actions := ui.Actions{ui.Button{Text: "Save step", Name: "do", Value: "save", TestID: "save-step"}}
	if next := p.d.next(p.Node); next != nil {
		words := "Save, go on to the next"
		if next.Number != "" {
			words = "Save, go on to step " + next.Number
		}
		actions = append(actions, ui.Button{Text: words, Kind: ui.Quiet, Name: "do", Value: "next", TestID: "save-next"})
	}
	return actions
}

// head says where the step stands, and moves, copies, turns off or deletes it.
func (p stepFormView) head() ui.PartHead {
	head := ui.PartHead{Back: ui.Link{Text: "All steps", Href: p.d.path()}, Over: p.over(), Title: p.Node.Step.Name}
	if !p.d.mayBuild() {
		return head
	}
	key := func(what string) []ui.Hidden { return []ui.Hidden{{Name: "key", Value: p.d.Key + "-" + what}} }
	at := func(what string) string { return p.d.stepPath(p.Node.ID(), what) }
	head.Actions = ui.Actions{
		ui.IconButton{Action: at("up"), Hidden: key("up"), Icon: ui.IconUp, Text: "Move up", Off: p.Node.Previous() == nil, TestID: "move-up"},
		ui.IconButton{Action: at("down"), Hidden: key("down"), Icon: ui.IconDown, Text: "Move down", Off: p.Node.Next() == nil, TestID: "move-down"},
	}
	before := p.d.addPath(place(p.Node))
	head.Menu = append(head.Menu,
		ui.MenuLink{Text: "Move to …", Href: at("move"), Icon: ui.IconSwap},
		ui.MenuLink{Text: "Add a step before it", Href: before, Icon: ui.IconPlus},
		ui.MenuPost{Action: at("copy"), Hidden: key("copy"), Icon: ui.IconCopy, Text: "Copy", TestID: "copy-step"},
	)
	if p.Node.Step.Off {
		head.Menu = append(head.Menu, ui.MenuPost{Action: at("on"), Hidden: key("on"), Icon: ui.IconPlay, Text: "Turn on", TestID: "turn-on"})
	} else {
		head.Menu = append(head.Menu, ui.MenuPost{Action: at("off"), Hidden: key("off"), Icon: ui.IconSkipped, Text: "Turn off", TestID: "turn-off"})
	}
	head.Menu = append(head.Menu, ui.MenuPost{Action: at("delete"), Hidden: key("delete"), Icon: ui.IconTrash, Text: "Delete", TestID: "delete-step"})
	return head
}

func (p publishView) hidden() []ui.Hidden {
	return []ui.Hidden{{Name: "seen", Value: strconv.FormatInt(p.d.Draft.Revision, 10)}, {Name: "live", Value: strconv.Itoa(p.d.Draft.Live)}}
}

// noteField asks why; nobody has to say why there is a first version.
func (p publishView) noteField() ui.Field {
	return ui.Field{
		Kind: ui.LongField, Name: "note", Label: "What does this version change, and why?", Rows: 2, MaxLength: maxNote,
		Optional: p.d.Draft.Live == 0, Value: p.Note, Error: p.Fault,
	}
}

func (p publishView) faults() []ui.Fault {
	if p.Fault == "" {
		return nil
	}
	return ui.Faults(p.noteField())
}

func (p publishView) steps() int {
	n := 0
	p.d.each(func(*pipeline.Node) { n++ })
	return n
}

func (c compareView) lead() ui.Sentence {
	if c.Restores {
		return ui.Words(fmt.Sprintf("Compared with v%d, which is live, it changes this:", c.From.Number))
	}
	return ui.Sentence{ui.Plain("Published "), ui.Plain(inSentence(ui.When(c.To.PublishedAt, c.v.now, c.v.zone()))), ui.Plain(". "), ui.Name(c.To.Note)}
}

func (p newPipelineView) field() ui.Field {
	return ui.Field{Name: "name", Label: "Name", Help: "What people read in lists, such as “Supplier invoices”.", Value: p.Name, Error: p.Fault, MaxLength: 120, Focus: true}
}
