package web

import (
	"context"
	"net/http"

	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// templatesView is the gallery: one template with what it does, the others as tiles.
type templatesView struct {
	v    *visit
	All  []shownTemplate
	Key  string
	Made map[string]pipeline.ID // by slug: the workspace's live pipeline of a template
}

// shownTemplate is a template ready to be shown.
type shownTemplate struct {
	pipeline.Template
	Program *pipeline.Program
}

// templatesPage is the gallery.
func (s *Server) templatesPage(v *visit) error {
	view := templatesView{v: v, Key: newFormKey(), Made: map[string]pipeline.ID{}}
	for _, template := range pipeline.Templates() {
		program, err := pipeline.Compile(template.Document)
		if err != nil {
			return err
		}
		view.All = append(view.All, shownTemplate{template, program})
	}
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		all, err := pipeline.List(ctx, tx)
		for _, one := range all {
			if one.Live > 0 && one.Template != "" {
				view.Made[one.Template] = one.ID
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return v.page(http.StatusOK, v.frame("Templates", inTemplates), templatesBody(view))
}

// useTemplate makes a pipeline of a template for the person's own data. Sending the
// form again leads to the pipeline that is there.
func (s *Server) useTemplate(v *visit) error {
	template, ok := pipeline.TemplateBySlug(v.Param("slug"))
	if !ok {
		return errNotFound
	}
	var id pipeline.ID
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var made bool
		var err error
		if id, made, err = v.pipelineOf(ctx, tx, template); err != nil || !made {
			return err
		}
		return tenants.Audit(ctx, tx, tenants.Entry{
			Actor: tenants.ByMember(v.me), Action: "pipeline.created", Target: tenants.Target{Kind: "pipeline", ID: id},
			Detail: map[string]any{"template": template.Slug},
		})
	})
	if err != nil {
		return err
	}
	return v.redirect(v.path("pipelines", id.String()))
}

func (t templatesView) mayBuild() bool { return t.v.me.Role.May(tenants.BuildPipelines) }

// feature is the first template, with its outline.
func (t templatesView) feature() ui.Feature {
	first := t.All[0]
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

// tiles are all templates but the featured one.
func (t templatesView) tiles() ui.Tiles {
	var tiles ui.Tiles
	for _, one := range t.All[1:] {
		tiles = append(tiles, ui.Tile{
			Name: one.Title, Href: t.v.path("templates", one.Slug), Chain: chainOf(one.Program), Text: one.Summary, Note: t.note(one),
			Actions: t.actions(one, ui.Outlined), TestID: "template-" + one.Slug,
		})
	}
	return tiles
}

// note is how large it is and what it may cost at most.
func (t templatesView) note(one shownTemplate) string {
	note := ui.Plural(int64(len(outlineLines(one.Program, false))), "step", "steps")
	if limit := one.Document.RunCap; limit != nil && t.v.maySeeMoney() {
		note += " · at most " + ledger.Micros(*limit).String() + " a run"
	}
	if _, made := t.Made[one.Slug]; made {
		note += " · in use here"
	}
	return note
}

// actions run the template with its sample or take it for the person's own data.
func (t templatesView) actions(one shownTemplate, kind ui.ButtonKind) ui.Actions {
	if !t.mayBuild() {
		return nil
	}
	use := ui.Actions{ui.PostButton{
		Action: t.v.path("templates", one.Slug, "use"),
		Button: ui.Button{Text: "Use this", About: one.Title, Kind: ui.Quiet, TestID: "use-" + one.Slug},
	}}
	if id, made := t.Made[one.Slug]; made {
		use = ui.Actions{ui.Button{Text: "Open the pipeline", About: one.Title, Kind: ui.Quiet, Href: t.v.path("pipelines", id.String())}}
	}
	return append(use, ui.PostButton{
		Action: t.v.path("templates", one.Slug, "try"), Hidden: []ui.Hidden{{Name: "key", Value: t.Key + "-" + one.Slug}},
		Button: ui.Button{Text: "Run with sample", About: one.Title, Kind: kind, Icon: ui.IconPlay, TestID: "try-" + one.Slug},
	})
}

// templatePage is one template with its whole outline.
func (s *Server) templatePage(v *visit) error {
	template, ok := pipeline.TemplateBySlug(v.Param("slug"))
	if !ok {
		return errNotFound
	}
	program, err := pipeline.Compile(template.Document)
	if err != nil {
		return err
	}
	view := templatesView{v: v, Key: newFormKey(), Made: map[string]pipeline.ID{}}
	return v.page(http.StatusOK, v.frame(template.Title, inTemplates), templateBody(view, shownTemplate{template, program}))
}
