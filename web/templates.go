package web

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// templatesView is the gallery: one template with what it does, the others as tiles under
// the areas of work that they are for.
type templatesView struct {
	v     *visit
	Area  string // the only one that is shown; empty: all
	Query string // what is searched for
	Key   string
	Made  map[string]pipeline.Pipeline // by slug: the workspace's live pipeline of a template
}

// longestQuery is the most characters of a search that are looked at.
const longestQuery = 100

// templatesPage is the gallery.
func (s *Server) templatesPage(v *visit) error {
	view := templatesView{v: v, Key: newFormKey(), Area: v.QueryParam("area")}
	query := []rune(strings.ToValidUTF8(strings.TrimSpace(v.QueryParam("q")), ""))
	view.Query = string(query[:min(len(query), longestQuery)])
	if !slices.Contains(areas(), view.Area) {
		view.Area = ""
	}
	if err := view.read(); err != nil {
		return err
	}
	return v.page(http.StatusOK, v.frame("Templates", inTemplates), templatesBody(view))
}

// read finds which templates the workspace has pipelines of.
func (t *templatesView) read() error {
	t.Made = map[string]pipeline.Pipeline{}
	return t.v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		all, err := pipeline.List(ctx, tx)
		for _, one := range all {
			if one.Live > 0 && one.Template != "" {
				t.Made[one.Template] = one
			}
		}
		return err
	})
}

// areas are those of all templates, in their order.
func areas() []string {
	var out []string
	for _, one := range pipeline.Templates() {
		if !slices.Contains(out, one.Area) {
			out = append(out, one.Area)
		}
	}
	return out
}

// found are the templates of an area that fit what is searched for.
func (t templatesView) found(area string) []pipeline.Template {
	var out []pipeline.Template
	for _, one := range pipeline.Templates() {
		if (area == "" || one.Area == area) && fitsQuery(one, t.Query) {
			out = append(out, one)
		}
	}
	return out
}

// fitsQuery tells whether a template has every word of a query in what it says of itself
// or in the names of its steps.
func fitsQuery(one pipeline.Template, query string) bool {
	text := strings.ToLower(one.Area + " " + one.Title + " " + one.Summary + " " + strings.Join(stepNames(one.Program.Roots()), " "))
	for word := range strings.FieldsSeq(strings.ToLower(query)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// stepNames are the names of the steps in a list and inside them.
func stepNames(nodes []*pipeline.Node) []string {
	var names []string
	for _, node := range nodes {
		names = append(names, node.Step.Name)
		for _, list := range node.Lists {
			names = append(names, stepNames(list.Nodes)...)
		}
	}
	return names
}

// shelves are the search and the areas with how many templates each has.
func (t templatesView) shelves() ui.Shelves {
	count := func(area string) string { return ui.Count(int64(len(t.found(area)))) }
	out := ui.Shelves{
		Label: "Templates by area", Action: t.v.path("templates"),
		Search: ui.Field{Kind: ui.SearchField, Name: "q", Label: "Search templates", Value: t.Query, Placeholder: "approve, invoice", MaxLength: longestQuery},
		Items:  []ui.Filter{{Text: "All", Href: t.v.path("templates") + queryOf("q", t.Query), Count: count(""), Here: t.Area == ""}},
	}
	if t.Area != "" {
		out.Hidden = []ui.Hidden{{Name: "area", Value: t.Area}}
	}
	for _, area := range areas() {
		out.Items = append(out.Items, ui.Filter{
			Text: area, Href: t.v.path("templates") + queryOf("area", area, "q", t.Query), Count: count(area), Here: t.Area == area,
		})
	}
	return out
}

// featured is the template that stands above the others; ok is false where somebody
// looks for something.
func (t templatesView) featured() (one pipeline.Template, ok bool) {
	return pipeline.Templates()[0], t.Area == "" && t.Query == ""
}

// shelf is what is shown of one area.
func (t templatesView) shelf(area string) ui.Tiles {
	first, apart := t.featured()
	var tiles ui.Tiles
	if t.Area != "" && t.Area != area {
		return nil
	}
	for _, one := range t.found(area) {
		if apart && one.Slug == first.Slug {
			continue
		}
		tiles = append(tiles, ui.Tile{
			Name: one.Title, Href: t.v.path("templates", one.Slug), Chain: kindsOf(one.Program), Text: one.Summary, Note: t.note(one),
			Actions: t.actions(one, ui.Outlined), TestID: "template-" + one.Slug,
		})
	}
	return tiles
}

// none tells that nothing fits what is searched for.
func (t templatesView) none() bool {
	return !slices.ContainsFunc(areas(), func(area string) bool { return len(t.shelf(area)) > 0 })
}

func (t templatesView) mayBuild() bool { return t.v.me.Role.May(tenants.BuildPipelines) }

// feature is a template with its outline.
func (t templatesView) feature(first pipeline.Template) ui.Feature {
	return ui.Feature{
		ID: "first", Title: first.Title, Text: first.Summary, Chain: chainOf(first.Program), Note: t.note(first),
		Actions: append(ui.Actions{
			ui.Button{Text: "See every step", About: first.Title, Kind: ui.Quiet, Href: t.v.path("templates", first.Slug)},
		}, t.actions(first, ui.Primary)...), Outline: rootsOf(first.Program),
		Needs: "You need no key: the practice model answers, in pretend dollars.",
	}
}

// rootsOf lists the steps of a program without those inside others.
func rootsOf(program *pipeline.Program) []ui.OutlineStep {
	var steps []ui.OutlineStep
	for _, node := range program.Roots() {
		steps = append(steps, ui.OutlineStep{Number: node.Number, Name: node.Step.Name, Note: node.Step.Kind.Title()})
	}
	return steps
}

// note is how large it is and what a run costs.
func (t templatesView) note(one pipeline.Template) string {
	note := ui.Plural(int64(len(stepNames(one.Program.Roots()))), "step", "steps")
	if t.v.maySeeMoney() {
		note += " · sample: " + aboutCost(one)
	}
	if _, made := t.Made[one.Slug]; made {
		note += " · in use here"
	}
	return note
}

// aboutCost is what a run on the sample costs, in words.
func aboutCost(one pipeline.Template) string {
	cost := ledger.Micros(one.SampleCost)
	if cost < ledger.Cent/2 {
		return cost.String() // “under $0.01”
	}
	return "about " + cost.String()
}

// actions run the template with its sample or take it for the person's own data.
func (t templatesView) actions(one pipeline.Template, kind ui.ButtonKind) ui.Actions {
	if !t.mayBuild() {
		return nil
	}
	return append(t.use(one), ui.PostButton{
		Action: t.v.path("templates", one.Slug, "try"), Hidden: []ui.Hidden{{Name: "key", Value: t.Key + "-" + one.Slug}},
		Button: ui.Button{Text: "Run with sample", About: one.Title, Kind: kind, Icon: ui.IconPlay, TestID: "try-" + one.Slug},
	})
}

// use leads to the questions of a template, if any is open; else it takes the template or
// leads to the pipeline that was made of it.
func (t templatesView) use(one pipeline.Template) ui.Actions {
	made, there := t.Made[one.Slug]
	open := one.Settings
	if there {
		open = one.Missing(made.Draft)
	}
	switch {
	case len(open) > 0:
		return ui.Actions{ui.Button{Text: "Use this", About: one.Title, Kind: ui.Quiet, Href: t.v.path("templates", one.Slug, "use"), TestID: "use-" + one.Slug}}
	case there:
		return ui.Actions{ui.Button{Text: "Open the pipeline", About: one.Title, Kind: ui.Quiet, Href: t.v.path("pipelines", made.ID.String())}}
	}
	return ui.Actions{ui.PostButton{
		Action: t.v.path("templates", one.Slug, "use"),
		Button: ui.Button{Text: "Use this", About: one.Title, Kind: ui.Quiet, TestID: "use-" + one.Slug},
	}}
}
