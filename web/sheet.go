package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tollgate/app/notice"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// sheetView is the procedure sheet of a pipeline: its live version for people who follow it,
// audit it or sign it, on paper.
type sheetView struct {
	v       *visit
	One     pipeline.Pipeline
	Version pipeline.Version
	By      string // who published it
	Told    notice.Settings
	Names   map[tenants.UserID]string
	Named   []pipeline.Named // the workspace's pipelines
}

func (s *Server) sheetPage(v *visit) error {
	id, err := idParam[pipeline.Pipeline](v, "pipeline")
	if err != nil {
		return err
	}
	view := sheetView{v: v}
	if err := v.inTx(func(ctx context.Context, tx tenants.Tx) error { return view.read(ctx, tx, id) }); err != nil {
		return err
	}
	frame := v.frame("Procedure: "+view.One.Name, inPipelines)
	frame.Narrow = true
	return v.page(http.StatusOK, frame, sheetBody(view))
}

func (s *sheetView) read(ctx context.Context, tx tenants.Tx, id pipeline.ID) error {
	var err error
	if s.One, err = pipeline.ByID(ctx, tx, id); err != nil {
		return err
	}
	if s.Version, err = liveVersion(ctx, tx, id); err != nil {
		return err
	}
	if s.Told, err = notice.SettingsOf(ctx, tx, id); err != nil {
		return err
	}
	if s.Names, err = tenants.Names(ctx, tx, []tenants.UserID{s.Told.Owner, s.Told.Backup, s.Version.PublishedBy}); err != nil {
		return err
	}
	s.By = s.Names[s.Version.PublishedBy]
	s.Named, err = pipeline.Names(ctx, tx)
	return err
}

// facts say what the sheet is about and how it came to be.
func (s sheetView) facts() []ui.Pair {
	person := func(id tenants.UserID) string {
		if id.IsZero() {
			return "nobody named"
		}
		return s.Names[id]
	}
	facts := []ui.Pair{
		{Label: "Workspace", Value: s.v.me.Tenant.Name},
		{Label: "Owner", Value: person(s.Told.Owner)},
		{Label: "Backup", Value: person(s.Told.Backup)},
		{Label: "Version", Value: "v" + strconv.Itoa(s.Version.Number) + ", published " + s.onPaper(s.Version.PublishedAt) + " by " + s.By},
		{Label: "Printed", Value: s.onPaper(s.v.now)},
	}
	if s.Version.Note != "" {
		facts = append(facts, ui.Pair{Label: "What changed last", Value: s.Version.Note})
	}
	if limit := s.Version.Document.RunCap; limit != nil && s.v.maySeeMoney() {
		facts = append(facts, ui.Pair{Label: "AI spend cap of a run", Value: ui.Dollars(*limit)})
	}
	if most := s.Version.Document.Concurrency; most != nil {
		facts = append(facts, ui.Pair{Label: "At once", Value: ui.Plural(int64(most.Limit), "run", "runs") + " at most"})
	}
	return facts
}

// onPaper writes a time so that it is still right when the sheet is read.
func (s sheetView) onPaper(t time.Time) string {
	return t.In(s.v.zone()).Format("2 January 2006, 15:04") + " " + ui.ZoneName(t, s.v.zone())
}

// every goes through the steps, those done about failures among them, with each its place.
func (s sheetView) every(visit func(place string, step pipeline.Step)) {
	var walk func(nodes []*pipeline.Node)
	walk = func(nodes []*pipeline.Node) {
		for _, node := range nodes {
			visit(node.Number+" "+node.Step.Name, *node.Step)
			for _, list := range node.Lists {
				walk(list.Nodes)
			}
		}
	}
	walk(s.Version.Program.Roots())
}

// deciders say who decides what, and what silence leads to.
func (s sheetView) deciders() []ui.Row {
	var rows []ui.Row
	s.every(func(place string, step pipeline.Step) {
		if with, ok := step.With.(*pipeline.Review); ok {
			rows = append(rows, ui.Row{Name: place, Reason: ui.Sentence{ui.Name(tellReview(s.Version.Program, with))}})
		}
	})
	return rows
}

// where says what leaves the workspace, to whom, at which step.
func (s sheetView) where() []ui.Row {
	var rows []ui.Row
	add := func(place, words string) {
		rows = append(rows, ui.Row{Name: place, Reason: ui.Sentence{ui.Name(words)}})
	}
	s.every(func(place string, step pipeline.Step) {
		switch with := step.With.(type) {
		case *pipeline.AI:
			add(place, "What its prompt holds goes to "+s.models(with)+".")
		case *pipeline.Email:
			to := readable(s.Version.Program, strings.Join(slices.Concat(with.To, with.CC), ", "))
			add(place, "A mail goes to "+to+withFiles(with)+".")
		case *pipeline.HTTP:
			add(place, "Data is exchanged with "+hostWords(s.Version.Program, with.URL)+".")
		case *pipeline.Child:
			add(place, "Values are handed to the pipeline “"+s.called(with)+"”.")
		case *pipeline.Emit:
			add(place, "The event “"+readable(s.Version.Program, with.Name)+"” is sent inside the workspace.")
		}
	})
	return rows
}

// models name those that a step may ask, in their order.
func (s sheetView) models(with *pipeline.AI) string {
	var names []string
	for _, model := range with.Models {
		names = append(names, modelName(model))
	}
	if len(names) == 0 {
		return "a model"
	}
	return strings.Join(names, ", or else to ")
}

func (s sheetView) called(with *pipeline.Child) string {
	for _, one := range s.Named {
		if one.ID.String() == with.Pipeline {
			return one.Name
		}
	}
	return "one that is not here any more"
}

// hostWords name where a call goes: its host, or that data decides.
func hostWords(program *pipeline.Program, text string) string {
	if address, err := url.Parse(text); err == nil && address.Host != "" && !strings.Contains(address.Host, "{") {
		return address.Host
	}
	return "the address " + readable(program, text)
}

// failures say what is done about them.
func (s sheetView) failures() []ui.Row {
	var rows []ui.Row
	var walk func(nodes []*pipeline.Node)
	walk = func(nodes []*pipeline.Node) {
		for _, node := range nodes {
			if words := tellCatches(node); words != "" {
				rows = append(rows, ui.Row{Name: node.Number + " " + node.Step.Name, Reason: ui.Sentence{ui.Name(words)}})
			}
			for _, list := range node.Lists {
				walk(list.Nodes)
			}
		}
	}
	walk(s.Version.Program.Roots())
	return rows
}

// told says who hears of runs in trouble.
func (s sheetView) told() string {
	var kinds []string
	for _, kind := range s.Told.Kinds {
		kinds = append(kinds, inSentenceCase(kind.Words()))
	}
	if len(kinds) == 0 {
		return "Nobody is told of runs in trouble."
	}
	words := "Owner and backup are told of " + ui.List(kinds) + "."
	if s.Told.HookURL != "" {
		words += " Another system is told, too."
	}
	return words
}

// results name what a finished run hands back.
func (s sheetView) results() string {
	var names []string
	for _, value := range s.Version.Document.Result {
		names = append(names, "“"+spaced(value.Name)+"”")
	}
	if len(names) == 0 {
		return "It hands nothing back."
	}
	return "It hands back " + ui.List(names) + "."
}
