package web

import (
	"net/url"
	"strconv"
	"time"

	"tollgate/app/engine"
	"tollgate/app/notice"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// runFilter is a choice of runs as addresses and forms write it.
type runFilter struct {
	engine.Filter
	Day      string // of From, as typed
	Children bool   // runs that other runs began are listed, too
}

// readRunFilter reads a filter by the names of its values. What it cannot be is not found,
// since no page leads there.
func (v *visit) readRunFilter(value func(string) string) (runFilter, error) {
	f := runFilter{Day: value("from"), Children: value("children") == "true"}
	f.Group, f.Class, f.Cause = engine.Group(value("state")), value("class"), value("cause")
	f.Find, f.Field, f.Exact = value("find"), value("field"), value("how") == "is"
	if !f.Group.Known() {
		return f, errNotFound
	}
	var err error
	if text := value("pipeline"); text != "" {
		if f.Pipeline, err = tenants.ParseID[pipeline.Pipeline](text); err != nil {
			return f, errNotFound
		}
	}
	if text := value("under"); text != "" {
		if f.Under, err = tenants.ParseID[engine.Run](text); err != nil {
			return f, errNotFound
		}
	}
	if f.Version, err = versionParam(value("version")); err != nil || f.Version > 0 && f.Pipeline.IsZero() {
		return f, errNotFound
	}
	if day, err := time.ParseInLocation(time.DateOnly, f.Day, v.zone()); err == nil {
		f.From = day
	} else {
		f.Day = ""
	}
	return f, nil
}

// values are the filter as readRunFilter reads it.
func (f runFilter) values() url.Values {
	query := url.Values{}
	for name, value := range map[string]string{
		"state": string(f.Group), "class": f.Class, "cause": f.Cause, "from": f.Day, "find": f.Find, "field": f.Field,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if f.Exact && f.Find != "" {
		query.Set("how", "is")
	}
	if !f.Pipeline.IsZero() {
		query.Set("pipeline", f.Pipeline.String())
	}
	if f.Version > 0 {
		query.Set("version", strconv.Itoa(f.Version))
	}
	if !f.Under.IsZero() {
		query.Set("under", f.Under.String())
	}
	if f.Children {
		query.Set("children", "true")
	}
	return query
}

// noticeFilter chooses the runs of a notice.
func noticeFilter(n notice.Notice) runFilter {
	f := runFilter{Filter: engine.Filter{Pipeline: n.Pipeline}}
	switch n.Kind {
	case notice.Failed:
		f.Group, f.Class = engine.GroupFailed, n.Class
	case notice.Capped:
		f.Group = engine.GroupCapped
	case notice.Exception:
		f.Group = engine.GroupPerson
	default:
		f.Group = engine.GroupOpen
	}
	return f
}

// chooses tells whether the filter is more than a group.
func (f runFilter) chooses() bool {
	f.Group = ""
	return len(f.values()) > 0
}

// folds are the lists in which runs that other runs began stand behind these. Where
// somebody has to do something, each run stands for itself.
var folds = map[engine.Group]bool{"": true, engine.GroupOpen: true, engine.GroupCompleted: true, engine.GroupCancelled: true}

// folded is the filter for the list: one of everything has the runs that began others only.
func (f runFilter) folded() engine.Filter {
	filter := f.Filter
	filter.Top = folds[f.Group] && !f.Children && f.Pipeline.IsZero() && f.Under.IsZero() && f.Find == ""
	return filter
}

// search is the form over the list, which leads to an address.
func (r runsView) search() runSearch {
	f := r.Filter
	search := runSearch{action: r.v.path("runs"), reset: r.address("", engine.RunID{})}
	if f.Group != "" {
		search.hidden = append(search.hidden, ui.Hidden{Name: "state", Value: string(f.Group)})
	}
	for _, name := range []string{"class", "cause", "under", "version"} {
		if value := f.values().Get(name); value != "" && (name != "version" || !f.Pipeline.IsZero()) {
			search.hidden = append(search.hidden, ui.Hidden{Name: name, Value: value})
		}
	}
	search.fields = append(search.fields, r.findFields()...)
	search.fields = append(search.fields, r.pipelineField(),
		ui.Field{Kind: ui.DateField, Name: "from", Label: "Started on or after", Value: f.Day})
	if folds[f.Group] && f.Under.IsZero() && f.Pipeline.IsZero() {
		search.fields = append(search.fields, ui.Field{Kind: ui.ChoiceField, List: true, Name: "children", Label: "Begun by another run", Value: f.values().Get("children"),
			Options: []ui.Option{{Value: "", Label: "Not listed"}, {Value: "true", Label: "Listed too"}}})
	}
	if f.chooses() {
		search.reset = r.v.path("runs")
		if f.Group != "" {
			search.reset += "?state=" + url.QueryEscape(string(f.Group))
		}
	} else {
		search.reset = ""
	}
	return search
}

// findFields ask for a value, where any pipeline says what its runs are found by.
func (r runsView) findFields() []ui.Field {
	f := r.Filter
	if len(r.Fields) == 0 && f.Find == "" {
		return nil
	}
	in := ui.Field{Kind: ui.ChoiceField, List: true, Name: "field", Label: "In", Value: f.Field, Options: []ui.Option{{Value: "", Label: "Any field"}}}
	for _, field := range r.Fields {
		in.Options = append(in.Options, ui.Option{Value: field.Name, Label: field.Title})
	}
	how := ui.Field{Kind: ui.ChoiceField, List: true, Name: "how", Label: "Which", Options: []ui.Option{{Value: "", Label: "Begins with"}, {Value: "is", Label: "Is exactly"}}}
	if f.Exact {
		how.Value = "is"
	}
	return []ui.Field{{Kind: ui.SearchField, Name: "find", Label: "Find", Value: f.Find, MaxLength: pipeline.MaxSearchText, Optional: true, Placeholder: "Order number"}, how, in}
}

func (r runsView) pipelineField() ui.Field {
	field := ui.Field{Kind: ui.ChoiceField, List: true, Name: "pipeline", Label: "Pipeline", Options: []ui.Option{{Value: "", Label: "All pipelines"}}}
	if !r.Filter.Pipeline.IsZero() {
		field.Value = r.Filter.Pipeline.String()
	}
	for _, one := range r.Pipelines {
		field.Options = append(field.Options, ui.Option{Value: one.ID.String(), Label: one.Name})
	}
	return field
}
