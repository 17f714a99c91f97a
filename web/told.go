package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"tollgate/app/notice"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// toldView is who is told when runs of a pipeline are in trouble, and of what.
type toldView struct {
	v        *visit
	One      pipeline.Pipeline
	Settings notice.Settings
	Members  []tenants.Membership
	Hooks    []notice.HookLine
	Field    string // that is wrong, if any is
	Fault    string
}

// hookLines is how many messages to another system a page lists.
const hookLines = 10

func (s *Server) toldPage(v *visit) error {
	view, err := v.readTold()
	if err != nil {
		return err
	}
	return view.show(http.StatusOK)
}

func (v *visit) readTold() (toldView, error) {
	view := toldView{v: v}
	id, err := idParam[pipeline.Pipeline](v, "pipeline")
	if err != nil {
		return view, err
	}
	return view, v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		if view.One, err = pipeline.ByID(ctx, tx, id); err != nil {
			return err
		}
		if view.Settings, err = notice.SettingsOf(ctx, tx, id); err != nil {
			return err
		}
		if view.Members, err = tenants.Members(ctx, tx); err != nil {
			return err
		}
		view.Hooks, err = notice.Hooks(ctx, tx, id, hookLines)
		return err
	})
}

func (t *toldView) show(status int) error {
	title := "Who is told about “" + t.One.Name + "”"
	if t.Fault != "" {
		title = "Error: " + title
	}
	frame := t.v.frame(title, inPipelines)
	frame.Narrow = true
	return t.v.page(status, frame, toldBody(*t))
}

// changeTold saves the form, or shows it again with what is wrong.
func (s *Server) changeTold(v *visit) error {
	view, err := v.readTold()
	if err != nil {
		return err
	}
	settings := notice.Settings{HookURL: v.FormValue("hook")}
	for name, to := range map[string]*tenants.UserID{"owner": &settings.Owner, "backup": &settings.Backup} {
		if text := v.FormValue(name); text != "" {
			if *to, err = tenants.ParseID[tenants.User](text); err != nil {
				return errNotFound
			}
		}
	}
	values, err := v.FormParams()
	if err != nil {
		return err
	}
	for _, kind := range values["kinds"] {
		settings.Kinds = append(settings.Kinds, notice.Kind(kind))
	}
	settings.Kinds = slices.Compact(settings.Kinds)
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		return notice.Save(ctx, tx, view.One.ID, settings, v.me)
	})
	if invalid, ok := errors.AsType[*tenants.Invalid](err); ok {
		settings.Generation, settings.Chosen = view.Settings.Generation, view.Settings.Chosen
		view.Settings, view.Field, view.Fault = settings, invalid.Field, invalid.Message
		return view.show(http.StatusUnprocessableEntity)
	}
	if err != nil {
		return err
	}
	return v.redirect(v.path("pipelines", view.One.ID.String(), "told"))
}

// renewHookSecret makes a new secret for messages to another system.
func (s *Server) renewHookSecret(v *visit) error {
	view, err := v.readTold()
	if err != nil {
		return err
	}
	generation, _ := strconv.Atoi(v.FormValue("generation"))
	if generation == view.Settings.Generation { // a form that is sent again renews nothing more
		if err := v.inTx(func(ctx context.Context, tx tenants.Tx) error { return notice.Renew(ctx, tx, view.One.ID, v.me) }); err != nil {
			return err
		}
	}
	return v.redirect(v.path("pipelines", view.One.ID.String(), "told"))
}

func (t toldView) fields() []ui.Field {
	people := func(name, label, help string, chosen tenants.UserID) ui.Field {
		field := ui.Field{Kind: ui.ChoiceField, List: true, Name: name, Label: label, Help: help, Options: []ui.Option{{Value: "", Label: "Nobody"}}}
		if !chosen.IsZero() {
			field.Value = chosen.String()
		}
		for _, member := range t.Members {
			field.Options = append(field.Options, ui.Option{Value: member.User.ID.String(), Label: member.User.Name + ", " + string(member.Role)})
		}
		return field
	}
	fields := []ui.Field{
		people("owner", "Owner", "Gets a mail when runs are in trouble.", t.Settings.Owner),
		people("backup", "Backup", "Gets the same mail.", t.Settings.Backup),
		{Kind: ui.TextField, Name: "hook", Label: "Address of another system", Value: t.Settings.HookURL, Optional: true, MaxLength: 2000, Autocomplete: "off",
			Help: "It is told as well, by a signed POST as in Standard Webhooks. It must be a public https address.", Placeholder: "https://example.com/hooks/tollgate"},
	}
	for i := range fields {
		if fields[i].Name == t.Field {
			fields[i].Error = t.Fault
		}
	}
	return fields
}

func (t toldView) kinds() ui.Picks {
	picks := ui.Picks{Name: "kinds", Label: "What they are told of"}
	for _, kind := range notice.Kinds() {
		picks.Options = append(picks.Options, ui.Pick{Value: string(kind), Label: kind.Words(), On: slices.Contains(t.Settings.Kinds, kind)})
	}
	return picks
}

func (t toldView) secret() string {
	return notice.HookSecret(t.v.s.Secret, t.One.ID, t.Settings.Generation)
}

func (t toldView) path(parts ...string) string {
	return t.v.path(append([]string{"pipelines", t.One.ID.String(), "told"}, parts...)...)
}

// hookRows list the newest messages.
func (t toldView) hookRows() []ui.TableRow {
	var rows []ui.TableRow
	for _, hook := range t.Hooks {
		badge := ui.Badge{Status: ui.Retrying, Words: "Tried again"}
		words := hook.LastError + " Next try " + inSentence(ui.WhenBrief(hook.NextTryAt, t.v.now, t.v.zone())) + "."
		switch {
		case hook.State == "sent":
			badge, words = ui.Badge{Status: ui.Done, Words: "Taken"}, ui.Plural(int64(hook.Attempt), "try", "tries")
		case hook.State == "failed":
			badge, words = ui.Badge{Status: ui.Failed, Words: "Given up"}, hook.LastError
		case hook.Attempt <= 1 && hook.LastError == "":
			badge, words = ui.Badge{Status: ui.Queued, Words: "Being sent"}, ""
		}
		rows = append(rows, ui.TableRow{Cells: []ui.Cell{
			{Text: ui.When(hook.CreatedAt, t.v.now, t.v.zone())}, {Badge: &badge}, {Text: words},
		}})
	}
	return rows
}

// toldWords say on the pipeline's page who is told.
func (p pipelineView) toldWords() ui.Sentence {
	var names []string
	for _, person := range p.ToldPeople {
		names = append(names, person.Name)
	}
	switch {
	case len(p.Told.Kinds) == 0 || len(names) == 0 && p.Told.HookURL == "":
		return ui.Sentence{ui.Strong("Nobody"), ui.Plain(" is told when its runs fail, stand still or wait for the AI spend cap.")}
	case len(names) == 0:
		return ui.Words("Only another system is told when its runs are in trouble.")
	case len(names) == 1:
		return ui.Sentence{ui.Name(names[0]), ui.Plain(" gets a mail when its runs are in trouble.")}
	}
	var out ui.Sentence
	for i, name := range names {
		if i > 0 {
			out = append(out, ui.Plain(" and "))
		}
		out = append(out, ui.Name(name))
	}
	return append(out, ui.Plain(" get a mail when its runs are in trouble."))
}

// troubles are what goes on with the pipeline's runs now.
func (p pipelineView) troubles() []ui.Row {
	var rows []ui.Row
	for _, n := range p.Notices {
		step := ""
		if node := p.stepNamed(n.StepID); node != nil {
			step = node.Step.Name
		}
		rows = append(rows, ui.Row{
			Name: n.Words(step), Href: p.v.path("runs") + "?" + noticeFilter(n).values().Encode(),
			Reason: ui.Words("Since " + inSentence(ui.When(n.FirstAt, p.v.now, p.v.zone())) + ", last " + inSentence(ui.WhenBrief(n.LastAt, p.v.now, p.v.zone())) + "."),
		})
	}
	return rows
}

func (p pipelineView) stepNamed(id string) *pipeline.Node {
	if p.Version.Program == nil {
		return nil
	}
	return p.Version.Program.Node(id)
}
