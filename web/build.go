package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// draftView is a pipeline's draft as its pages show it: the outline, what is wrong with
// it, and what differs from the live version.
type draftView struct {
	v        *visit
	Draft    pipeline.Draft
	Sketch   *pipeline.Program
	Names    *pipeline.DataNames
	Problems []pipeline.Problem
	Changes  []pipeline.Change // since the live version; none before the first is published
	Here     string            // id of the step that is edited; empty on the other pages
	Key      string            // one-time key of the page's forms

	Models  []Model             // that its steps may ask
	Others  []pipeline.Pipeline // what a step may run; read where a step does
	Secrets []string            // names; read where a step calls
	Samples samples
}

// draftOf reads the draft that the address names.
func (v *visit) draftOf() (*draftView, error) {
	id, err := idParam[pipeline.Pipeline](v, "pipeline")
	if err != nil {
		return nil, err
	}
	view := &draftView{v: v, Key: newFormKey()}
	return view, v.inTx(func(ctx context.Context, tx tenants.Tx) error { return view.read(ctx, tx, id) })
}

func (d *draftView) read(ctx context.Context, tx tenants.Tx, id pipeline.ID) error {
	var err error
	if d.Draft, err = pipeline.ReadDraft(ctx, tx, id); err != nil {
		return err
	}
	if d.Draft.Unread != nil {
		return d.Draft.Unread
	}
	d.Sketch = pipeline.Sketch(d.Draft.Draft)
	d.Names = pipeline.NewDataNames(d.Sketch.AllData())
	if d.Problems, err = pipeline.CheckIn(ctx, tx, d.Draft.Draft); err != nil {
		return err
	}
	money, err := moneyOf(ctx, tx)
	if err != nil {
		return err
	}
	d.Problems = append(d.Problems, pipeline.CheckMoney(d.Draft.Draft, money)...)
	if d.Draft.Live > 0 {
		live, err := pipeline.VersionByNumber(ctx, tx, id, d.Draft.Live)
		if err != nil {
			return err
		}
		d.Changes = pipeline.Changes(live.Document, d.Draft.Draft)
	}
	if err := d.checkModels(ctx, tx); err != nil {
		return err
	}
	return d.readAround(ctx, tx)
}

// checkModels adds what is wrong with the models that the draft's steps ask: one that is not
// set up here, or that there is no key for.
func (d *draftView) checkModels(ctx context.Context, tx tenants.Tx) error {
	var err error
	if d.Models, err = d.v.s.callable(ctx, tx); err != nil {
		return err
	}
	d.Problems = append(d.Problems, pipeline.CheckModels(d.Draft.Draft, d.modelFault)...)
	return nil
}

func (d *draftView) modelFault(id string) string {
	known := func(m Model) bool { return m.ID == id }
	switch {
	case slices.ContainsFunc(d.Models, known):
		return ""
	case slices.ContainsFunc(d.v.s.Models, known):
		return "There is no key to call it with. An owner or admin can add one to the provider keys. Or choose another model."
	}
	return "Choose one of the models that are set up here."
}

// readAround reads what the form of the step at hand offers besides data.
func (d *draftView) readAround(ctx context.Context, tx tenants.Tx) error {
	here := d.Sketch.Node(d.v.Param("at"))
	if here == nil {
		return nil
	}
	d.Samples = samplesOf(ctx, d.Draft.Draft)
	var err error
	switch here.Kind() {
	case pipeline.KindChild:
		d.Others, err = pipeline.List(ctx, tx)
	case pipeline.KindHTTP:
		stored, listErr := tenants.StoredSecrets(ctx, tx)
		for _, one := range stored {
			d.Secrets = append(d.Secrets, one.Name)
		}
		err = listErr
	}
	return err
}

// path is an address under the draft's own.
func (d *draftView) path(parts ...string) string {
	return d.v.path(append([]string{"pipelines", d.Draft.ID.String(), "draft"}, parts...)...)
}

func (d *draftView) stepPath(id string, parts ...string) string {
	return d.path(append([]string{"steps", id}, parts...)...)
}

// addPath is the page that adds a step at a place.
func (d *draftView) addPath(at pipeline.Place) string {
	query := url.Values{"in": {at.Parent}, "list": {string(at.List)}, "place": {strconv.Itoa(at.Index)}}
	return d.path("add") + "?" + query.Encode()
}

func (d *draftView) mayBuild() bool { return d.v.me.Role.May(tenants.BuildPipelines) }

// page draws a page of the draft in its frame.
func (d *draftView) page(status int, title string, body templ.Component) error {
	frame := d.v.frame(title, inPipelines)
	frame.Strip = d.bar()
	return d.v.page(status, frame, body)
}

// builderPage is the draft as a whole: its outline, and the settings of the pipeline.
func (s *Server) builderPage(v *visit) error {
	view, err := v.draftOf()
	if err != nil {
		return err
	}
	return view.showSettings(http.StatusOK, nil)
}

// build is the frame of the builder's pages.
func (d *draftView) build() ui.Build {
	return ui.Build{Outline: draftOutline(d), Aside: draftAside(d), AtPart: d.Here != ""}
}

// edit makes one change of the draft, under the one-time key of the form that asked for it.
func (v *visit) edit(change func(pipeline.Document) (pipeline.Document, string, string, error)) (step string, err error) {
	id, err := idParam[pipeline.Pipeline](v, "pipeline")
	if err != nil {
		return "", err
	}
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		if _, err := pipeline.ByID(ctx, tx, id); err != nil {
			return err
		}
		key := v.FormValue("key")
		if key == "" || len(key) > 200 {
			return errNoKey
		}
		step, err = pipeline.EditDraft(ctx, tx, id, pipeline.Edit{Key: key, By: v.me.User.ID, Change: change})
		return err
	})
	return step, err
}

// stepParam is the step that the address names.
func (d *draftView) stepParam() (*pipeline.Node, error) {
	node := d.Sketch.Node(d.v.Param("at"))
	if node == nil {
		return nil, errNoStep
	}
	d.Here = node.ID()
	return node, nil
}

// Reasons why a page of a draft is not there.
var (
	errNoStep = errors.New("the draft has no such step")
	errNoKey  = errors.New("the form came without its key")
)

// backTo is the page of a draft that shows a step, or the whole where there is none.
func (v *visit) backTo(step string) error {
	path := v.path("pipelines", v.Param("pipeline"), "draft")
	if step != "" {
		path = v.path("pipelines", v.Param("pipeline"), "draft", "steps", step)
	}
	return v.redirect(path)
}

// undoEdit takes the last change of the draft back, redoEdit makes it again.
func (s *Server) undoEdit(v *visit) error { return v.swapEdit(pipeline.UndoDraft) }

func (s *Server) redoEdit(v *visit) error { return v.swapEdit(pipeline.RedoDraft) }

func (v *visit) swapEdit(swap func(context.Context, tenants.Tx, pipeline.ID, int64, tenants.UserID) (string, error)) error {
	id, err := idParam[pipeline.Pipeline](v, "pipeline")
	if err != nil {
		return err
	}
	seen, _ := strconv.ParseInt(v.FormValue("seen"), 10, 64)
	var step string
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		if step, err = swap(ctx, tx, id, seen, v.me.User.ID); err != nil {
			return err
		}
		one, err := pipeline.ByID(ctx, tx, id)
		if _, _, there := one.Draft.StepAt(step); !there {
			step = ""
		}
		return err
	})
	if err != nil {
		return err
	}
	return v.backTo(step)
}

// newPipelinePage asks for the name of a pipeline that begins empty.
func (s *Server) newPipelinePage(v *visit) error {
	return v.page(http.StatusOK, v.narrow("New pipeline"), newPipelineBody(newPipelineView{v: v, Key: newFormKey()}))
}

type newPipelineView struct {
	v                *visit
	Key, Name, Fault string
}

func (s *Server) newPipeline(v *visit) error {
	view := newPipelineView{v: v, Key: v.FormValue("key"), Name: v.FormValue("name")}
	if view.Key == "" {
		return errNoKey
	}
	var id pipeline.ID
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		if id, err = justMade(ctx, tx, view.Name); err != nil || !id.IsZero() {
			return err
		}
		draft := pipeline.Document{Semantics: pipeline.Semantics, Name: view.Name}
		if id, err = pipeline.Create(ctx, tx, draft, "", v.me.User.ID); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenants.Entry{
			Actor: tenants.ByMember(v.me), Action: "pipeline.created", Target: tenants.Target{Kind: "pipeline", ID: id}, Detail: map[string]any{},
		})
	})
	if invalid, ok := errors.AsType[*pipeline.Invalid](err); ok {
		v.saved, view.Fault = false, invalid.Problems[0].Message
		return v.page(http.StatusUnprocessableEntity, v.narrow("Error: New pipeline"), newPipelineBody(view))
	}
	if err != nil {
		return err
	}
	return v.redirect(v.path("pipelines", id.String(), "draft"))
}

// justMade finds a pipeline that was made under this name a moment ago and is empty still:
// a form that is sent twice makes one.
func justMade(ctx context.Context, tx tenants.Tx, name string) (pipeline.ID, error) {
	all, err := pipeline.List(ctx, tx)
	i := slices.IndexFunc(all, func(one pipeline.Pipeline) bool {
		return one.Name == name && one.Live == 0 && one.Revision == 0 && len(one.Draft.Steps) == 0 && tx.Now.Sub(one.CreatedAt) < time.Minute
	})
	if i < 0 {
		return pipeline.ID{}, err
	}
	return all[i].ID, err
}
