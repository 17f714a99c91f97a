package web

import (
	"context"
	"mime"
	"net/http"
	"strconv"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// exportView tells what an export of the live version does not say.
type exportView struct {
	v       *visit
	One     pipeline.Pipeline
	Version pipeline.Version
	Losses  []pipeline.Loss
	File    []byte
}

// readExport exports the live version.
func (s *Server) readExport(v *visit) (exportView, error) {
	id, err := idParam[pipeline.Pipeline](v, "pipeline")
	if err != nil {
		return exportView{}, err
	}
	view := exportView{v: v}
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		if view.One, err = pipeline.ByID(ctx, tx, id); err != nil {
			return err
		}
		if view.One.Live == 0 {
			return engine.ErrNotLive
		}
		view.Version, err = pipeline.VersionByNumber(ctx, tx, id, view.One.Live)
		return err
	})
	if err != nil {
		return exportView{}, err
	}
	view.File, view.Losses = view.Version.Document.Export()
	return view, nil
}

// exportPage says what gets lost before the file is taken.
func (s *Server) exportPage(v *visit) error {
	view, err := s.readExport(v)
	if err != nil {
		return err
	}
	return v.page(http.StatusOK, v.frame("Export "+view.One.Name, inPipelines), exportBody(view))
}

// exportFile is the file itself.
func (s *Server) exportFile(v *visit) error {
	view, err := s.readExport(v)
	if err != nil {
		return err
	}
	h := v.Response().Header()
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": pipeline.Slug(view.One.Name) + ".workflow.json"}))
	h.Set("Content-Security-Policy", contentPolicy+"; sandbox")
	return v.Blob(http.StatusOK, "application/json", view.File)
}

// rows name what is lost: first of the whole pipeline, then by step.
func (e exportView) rows(ofSteps bool) []ui.Row {
	var rows []ui.Row
	for _, one := range e.Losses {
		if (one.Step != "") != ofSteps {
			continue
		}
		row := ui.Row{Reason: ui.Sentence{ui.Name(one.Says)}}
		if node := e.Version.Program.Node(one.Step); node != nil {
			row.Name, row.EndNote = node.Step.Name, node.Number
		}
		rows = append(rows, row)
	}
	return rows
}

func (e exportView) title() string {
	return "Export v" + strconv.Itoa(e.One.Live) + " to the Open Workflow DSL"
}

// exporting leads to the export of a live version, for who may build.
func (p versionsView) exporting() ui.Actions {
	if p.One.Live == 0 || !p.v.me.Role.May(tenants.BuildPipelines) {
		return nil
	}
	return ui.Actions{ui.Button{Text: "Export", Href: p.v.path("pipelines", p.One.ID.String(), "export"), TestID: "export"}}
}
