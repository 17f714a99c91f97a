package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/trigger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// startView is the form that starts a run, empty, filled in with the sample, or as it
// was sent.
type startView struct {
	v        *visit
	Pipeline pipeline.Pipeline
	Version  pipeline.Version
	Key      string
	Sample   bool        // filled in with the sample
	Earlier  *engine.Run // what this very form started before
	Cost     engine.CostPreview
	Form     pipeline.Form
	Problems []pipeline.FieldProblem
}

// The names of what travels with the form beside its fields, whose own names have no
// hyphens.
const (
	formKeyName   = "form-key"
	sampleFileTag = "sample-files"
	askAgainName  = "ask-again"
)

// startPage draws the form. Its key stands in the address, so that the browser's back
// button returns to the same form: sending it again is the same start.
func (s *Server) startPage(v *visit) error {
	id, err := idParam[pipeline.Pipeline](v, "pipeline")
	if err != nil {
		return err
	}
	view := startView{v: v, Key: v.QueryParam("form"), Sample: v.QueryParam("sample") != ""}
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error { return view.read(ctx, tx, id) })
	if err != nil {
		return err
	}
	if !trigger.FitsAsKey(view.Key) {
		return v.redirect(view.address(newFormKey(), view.Sample))
	}
	if view.Sample {
		view.Form.Values = sampleValues(view.Version.Document)
	}
	frame := v.frame("Start "+view.Pipeline.Name, inPipelines)
	frame.Narrow = true
	return v.page(http.StatusOK, frame, startBody(view))
}

// read takes the live version, not the draft: it is what will run.
func (f *startView) read(ctx context.Context, tx tenants.Tx, id pipeline.ID) error {
	var err error
	if f.Pipeline, err = pipeline.ByID(ctx, tx, id); err != nil {
		return err
	}
	if f.Version, err = liveVersion(ctx, tx, id); err != nil {
		return err
	}
	if f.Cost, err = engine.PreviewCost(ctx, tx, f.Version); err != nil {
		return err
	}
	run, err := trigger.ByHand{By: f.v.me, FormKey: f.Key}.Earlier(ctx, tx)
	if err == nil {
		f.Earlier = &run
	} else if !errors.Is(err, engine.ErrNoRun) {
		return err
	}
	return nil
}

// address is that of the form with a key.
func (f startView) address(key string, sample bool) string {
	query := url.Values{"form": {key}}
	if sample {
		query.Set("sample", "1")
	}
	return f.v.path("pipelines", f.Pipeline.ID.String(), "start") + "?" + query.Encode()
}

// startRun starts the run, or shows the form again with all that was typed.
func (s *Server) startRun(v *visit) error {
	id, err := idParam[pipeline.Pipeline](v, "pipeline")
	if err != nil {
		return err
	}
	form, err := v.readForm()
	if err != nil {
		return err
	}
	view := startView{v: v, Key: v.FormValue(formKeyName), Form: form, Sample: v.FormValue(sampleFileTag) != ""}
	var hand trigger.ByHand
	var now time.Time
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		now = tx.Now
		if err := view.read(ctx, tx, id); err != nil {
			return err
		}
		hand, view.Problems = view.start(id)
		return nil
	})
	if err != nil {
		return err
	}
	if len(view.Problems) > 0 {
		v.saved = false
		frame := v.frame("Error: "+ui.Plural(int64(len(view.Problems)), "thing", "things")+" to fix", inPipelines)
		frame.Narrow = true
		return v.page(http.StatusUnprocessableEntity, frame, startBody(view))
	}
	run, err := hand.StartNow(v.ctx(), v.me.Tenant.ID, s.Engine)
	if err != nil {
		v.saved = false
		return err
	}
	if now.Sub(run.CreatedAt) > doubleClick {
		return v.redirect(v.path("runs", run.ID.String()) + "?again=1")
	}
	return v.redirect(v.path("runs", run.ID.String()))
}

// doubleClick is how long a second press counts as the same one, of which nothing needs
// to be said.
const doubleClick = 10 * time.Second

// start reads the form against the fields of the version that will run.
func (f *startView) start(id pipeline.ID) (trigger.ByHand, []pipeline.FieldProblem) {
	document := f.Version.Document
	sampled, samples, sampleErr := document.SampleInput()
	if f.Sample && sampleErr == nil {
		f.takeSampleFiles(samples)
	}
	input, files, problems := pipeline.ParseInput(document.Input, f.Form)
	return trigger.ByHand{
		Pipeline: id, Input: input, Files: files, By: f.v.me, FormKey: f.Key, Once: trigger.Once{Key: f.onceKey()}, Fresh: f.asksAgain(),
		Sample: document.Sample != nil && sampleErr == nil && bytes.Equal(input, sampled),
	}, problems
}

// onceName is the field for a key under which the pipeline starts once.
const onceName = "start-once"

func (f *startView) onceKey() string {
	return strings.TrimSpace(url.Values(f.Form.Values).Get(onceName))
}

// once asks for that key, behind a fold: most starts need none.
func (f startView) once() ui.Fold {
	return ui.Fold{ID: "once", Title: "Start only once", Open: f.onceKey() != "", Body: ui.Field{
		Kind: ui.TextField, Name: onceName, Label: "Key of this start", Value: f.onceKey(), Optional: true, MaxLength: trigger.MaxOnceKey,
		Help: "Such as an order’s number. For 30 days a second start with the same key leads to the first run; with other input it is refused.",
	}}
}

// takeSampleFiles puts the sample's files where no other was chosen.
func (f *startView) takeSampleFiles(samples []pipeline.StoredFile) {
	for _, sample := range samples {
		if _, chosen := f.Form.Files[sample.Field]; !chosen {
			f.Form.Files[sample.Field] = pipeline.Upload{Name: sample.Name, Data: sample.Data}
		}
	}
}

// readForm reads a form with its files, all within the route's limit. It stays in
// memory: what is larger than the limit was refused before.
func (v *visit) readForm() (pipeline.Form, error) {
	r := v.Request()
	form := pipeline.Form{Files: map[string]pipeline.Upload{}}
	if err := r.ParseMultipartForm(v.route.maxBody); err != nil && !errors.Is(err, http.ErrNotMultipart) {
		if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return form, large
		}
		return form, echo.NewHTTPError(http.StatusBadRequest).SetInternal(err)
	}
	form.Values = r.PostForm
	if r.MultipartForm == nil {
		return form, nil
	}
	defer func() { _ = r.MultipartForm.RemoveAll() }() // what stays behind is the system's to remove
	for name, headers := range r.MultipartForm.File {
		if len(headers) == 0 || headers[0].Filename == "" {
			continue // a browser sends a part without a name where nothing was chosen
		}
		file, err := headers[0].Open()
		if err != nil {
			return form, err
		}
		data, err := io.ReadAll(file)
		_ = file.Close()
		if err != nil {
			return form, err
		}
		form.Files[name] = pipeline.Upload{Name: headers[0].Filename, Data: data}
	}
	return form, nil
}
