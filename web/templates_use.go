package web

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// useView asks for what a template lacks in this workspace.
type useView struct {
	v        *visit
	Template pipeline.Template
	Missing  []pipeline.Setting
	Made     bool // there is a pipeline of it already
	Alone    bool // nobody else may decide
	Answers  map[string]string
	Model    string
	Models   []Model // that there is a key for
	Priced   func(model string) bool
	Faults   map[string]string // by the name of a field
}

// usePage is the form; where nothing is to be asked it leads to the pipeline or the
// template.
func (s *Server) usePage(v *visit) error {
	view, made, err := s.readUse(v)
	switch {
	case err != nil:
		return err
	case len(view.Missing) > 0:
		return view.show(http.StatusOK)
	case view.Made:
		return v.redirect(v.path("pipelines", made.ID.String()))
	}
	return v.redirect(v.path("templates", view.Template.Slug))
}

// readUse reads what there is of a template.
func (s *Server) readUse(v *visit) (useView, pipeline.Pipeline, error) {
	template, ok := pipeline.TemplateBySlug(v.Param("slug"))
	if !ok {
		return useView{}, pipeline.Pipeline{}, errNotFound
	}
	view := useView{v: v, Template: template, Missing: template.Settings, Answers: map[string]string{}, Faults: map[string]string{}}
	var made pipeline.Pipeline
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		if made, view.Made, err = madeOf(ctx, tx, template.Slug); err != nil {
			return err
		}
		if view.Priced, err = engine.Priced(ctx, tx); err != nil {
			return err
		}
		if view.Models, err = s.callable(ctx, tx); err != nil {
			return err
		}
		view.Models = offered(view.Models, nil)
		view.Alone, err = v.decidesAlone(ctx, tx)
		return err
	})
	if view.Made {
		view.Missing = template.Missing(made.Draft)
	}
	return view, made, err
}

// madeOf finds the workspace's live pipeline of a template.
func madeOf(ctx context.Context, tx tenants.Tx, slug string) (pipeline.Pipeline, bool, error) {
	all, err := pipeline.List(ctx, tx)
	i := slices.IndexFunc(all, func(one pipeline.Pipeline) bool { return one.Template == slug && one.Live > 0 })
	if err != nil || i < 0 {
		return pipeline.Pipeline{}, false, err
	}
	return all[i], true, nil
}

// onlyOf is madeOf for whoever makes one where there is none: no second one is made
// meanwhile.
func onlyOf(ctx context.Context, tx tenants.Tx, slug string) (pipeline.Pipeline, bool, error) {
	if err := pipeline.LockTemplate(ctx, tx, slug); err != nil {
		return pipeline.Pipeline{}, false, err
	}
	return madeOf(ctx, tx, slug)
}

// show draws the form.
func (u useView) show(status int) error {
	title := "Use “" + u.Template.Title + "”"
	if len(u.Faults) > 0 {
		title = "Error: " + title
	}
	frame := u.v.frame(title, inTemplates)
	frame.Narrow = true
	return u.v.page(status, frame, useBody(u))
}

// fields are the questions: one for each setting that is missing, and the model where
// there is a choice that nobody has made.
func (u useView) fields() []ui.Field {
	var fields []ui.Field
	for _, s := range u.Missing {
		field := ui.Field{Kind: ui.TextField, Name: s.Name, Label: s.Label, Help: s.Help, Value: u.Answers[s.Name], Error: u.Faults[s.Name], MaxLength: 100}
		_, sent := u.Answers[s.Name]
		switch {
		case s.Type == pipeline.SettingEmail && !sent:
			field.Kind, field.Value = ui.EmailField, u.v.me.User.Email
		case s.Type == pipeline.SettingEmail:
			field.Kind = ui.EmailField
		case !sent:
			field.Value = u.v.me.Tenant.Name
		}
		fields = append(fields, field)
	}
	if !u.Made && len(u.Models) > 1 && len(u.Template.Document.Models()) > 0 {
		fields = append(fields, u.modelField())
	}
	return fields
}

func (u useView) modelField() ui.Field {
	field := ui.Field{
		Kind: ui.ChoiceField, Name: "model", Label: "Which model answers?", Help: "All AI steps ask it. The practice model reads nothing and costs pretend dollars.",
		Value: u.Model, Error: u.Faults["model"],
	}
	if field.Value == "" {
		field.Value = u.Template.Document.Models()[0]
	}
	for _, model := range u.Models {
		option := ui.Option{Value: model.ID, Label: model.Name}
		if !u.Priced(model.ID) {
			option.Help = "Its price is not known."
		}
		field.Options = append(field.Options, option)
	}
	return field
}

// who says who will be able to decide.
func (u useView) who() string {
	if u.Alone {
		return "Nobody else in this workspace may decide, so you may decide on runs that you start yourself."
	}
	return "Whoever starts a run may not decide on it; others in this workspace who may decide are asked."
}

func (u useView) verb() string {
	if u.Made {
		return "Publish with these"
	}
	return "Make the pipeline"
}

// useTemplate makes a pipeline of a template for the person's own data, or fills in the
// one that a sample was tried with. Sending the form again leads to the pipeline that is
// there.
func (s *Server) useTemplate(v *visit) error {
	view, _, err := s.readUse(v)
	if err != nil {
		return err
	}
	for _, one := range view.Missing {
		view.Answers[one.Name] = v.FormValue(one.Name)
	}
	view.Model = v.FormValue("model")
	var id pipeline.ID
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		id, err = view.make(ctx, tx)
		return err
	})
	if problems, ok := errors.AsType[unfilled](err); ok {
		for _, one := range problems {
			view.Faults[one.Field] = one.Message
		}
		return view.show(http.StatusUnprocessableEntity)
	}
	if err != nil {
		return err
	}
	return v.redirect(v.path("pipelines", id.String()))
}

// unfilled are the answers that cannot be taken.
type unfilled []pipeline.FieldProblem

func (u unfilled) Error() string { return "some answers cannot be taken" }

// make publishes what the answers make of the template, where something is missing.
func (u useView) make(ctx context.Context, tx tenants.Tx) (pipeline.ID, error) {
	made, there, err := onlyOf(ctx, tx, u.Template.Slug)
	if err != nil {
		return pipeline.ID{}, err
	}
	if !there {
		return u.create(ctx, tx)
	}
	one, err := pipeline.Lock(ctx, tx, made.ID)
	switch {
	case err != nil:
		return pipeline.ID{}, err
	case one.Unread != nil:
		return pipeline.ID{}, one.Unread
	case len(u.Template.Missing(one.Draft)) == 0:
		return one.ID, nil
	}
	draft, problems := u.Template.Fill(one.Draft, u.Answers)
	if len(problems) > 0 {
		return pipeline.ID{}, unfilled(problems)
	}
	if err := pipeline.SaveDraft(ctx, tx, one.ID, draft, u.v.me.User.ID); err != nil {
		return pipeline.ID{}, err
	}
	return one.ID, u.publish(ctx, tx, one.ID, "pipeline.published", "Filled in for this workspace")
}

// create makes the pipeline.
func (u useView) create(ctx context.Context, tx tenants.Tx) (pipeline.ID, error) {
	document, problems := u.Template.Fill(u.Template.Document, u.Answers)
	if u.Model != "" {
		if _, err := u.v.s.modelFor(ctx, tx, u.Model); err != nil {
			invalid, ok := errors.AsType[*tenants.Invalid](err)
			if !ok {
				return pipeline.ID{}, err
			}
			problems = append(problems, pipeline.FieldProblem{Field: "model", Message: invalid.Message})
		}
		document = document.WithModel(u.Model)
	}
	if len(problems) > 0 {
		return pipeline.ID{}, unfilled(problems)
	}
	document, err := u.v.fitting(ctx, tx, document)
	if err != nil {
		return pipeline.ID{}, err
	}
	id, err := pipeline.Create(ctx, tx, document, u.Template.Slug, u.v.me.User.ID)
	if err != nil {
		return pipeline.ID{}, err
	}
	return id, u.publish(ctx, tx, id, "pipeline.created", "From the template “"+u.Template.Title+"”")
}

func (u useView) publish(ctx context.Context, tx tenants.Tx, id pipeline.ID, action, note string) error {
	if _, err := pipeline.Publish(ctx, tx, id, note, u.v.me.User.ID); err != nil {
		return err
	}
	return tenants.Audit(ctx, tx, tenants.Entry{
		Actor: tenants.ByMember(u.v.me), Action: action, Target: tenants.Target{Kind: "pipeline", ID: id},
		Detail: map[string]any{"template": u.Template.Slug},
	})
}
