package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// textView is the draft as text, in which it is edited by the same rules.
type textView struct {
	d        *draftView
	YAML     bool
	Text     string
	Problems []pipeline.TextProblem
	Late     bool // somebody changed the draft meanwhile
}

// textPage shows the draft as YAML, or as JSON.
func (s *Server) textPage(v *visit) error {
	view, err := v.draftOf()
	if err != nil {
		return err
	}
	text := textView{d: view, YAML: v.QueryParam("as") != "json"}
	if text.Text = view.Draft.Draft.YAML(); !text.YAML {
		text.Text = view.Draft.Draft.Indented()
	}
	text.Problems = pipeline.TextLines(text.Text, view.Problems)
	return view.page(http.StatusOK, "Text of "+view.Draft.Name, textBody(text))
}

// saveText makes the draft what was written, if it can be read and nobody changed the
// draft since.
func (s *Server) saveText(v *visit) error {
	view, err := v.draftOf()
	if err != nil {
		return err
	}
	written, _ := (&stepForm{sent: map[string][]string{"text": {v.FormValue("text")}}}).typed("text")
	text := textView{d: view, YAML: v.FormValue("as") != "json", Text: written}
	document, problems := pipeline.ReadText(written)
	if text.Problems = problems; len(problems) > 0 {
		return view.page(http.StatusUnprocessableEntity, "Error: Text of "+view.Draft.Name, textBody(text))
	}
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		one, err := pipeline.Lock(ctx, tx, view.Draft.ID)
		switch {
		case err != nil:
			return err
		case strconv.FormatInt(one.Revision, 10) != v.FormValue("seen"):
			return pipeline.ErrDraftMoved
		case v.FormValue("key") == "":
			return errNoKey
		}
		_, err = pipeline.EditDraft(ctx, tx, one.ID, pipeline.Edit{Key: v.FormValue("key"), By: v.me.User.ID,
			Change: func(before pipeline.Document) (pipeline.Document, string, string, error) {
				return document, saysOf(before, document, document.Name), "", nil
			}})
		return err
	})
	invalid, bad := errors.AsType[*pipeline.Invalid](err)
	switch {
	case errors.Is(err, pipeline.ErrDraftMoved):
		v.saved, text.Late = false, true
		return view.page(http.StatusConflict, "Error: Text of "+view.Draft.Name, textBody(text))
	case bad:
		v.saved, text.Problems = false, pipeline.TextLines(written, invalid.Problems)
		return view.page(http.StatusUnprocessableEntity, "Error: Text of "+view.Draft.Name, textBody(text))
	case err != nil:
		return err
	}
	as := "yaml"
	if !text.YAML {
		as = "json"
	}
	return v.redirect(view.path("text") + "?as=" + as)
}

// textFile hands the draft out as a file.
func (s *Server) textFile(v *visit) error {
	view, err := v.draftOf()
	if err != nil {
		return err
	}
	name, text := "pipeline.yaml", view.Draft.Draft.YAML()
	if v.QueryParam("as") == "json" {
		name, text = "pipeline.json", view.Draft.Draft.Indented()
	}
	v.Response().Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	return v.Blob(http.StatusOK, "application/octet-stream", []byte(text))
}

// schema is the JSON Schema of documents, for editors and other tools.
func (s *Server) schema(v *visit) error {
	return v.Blob(http.StatusOK, "application/schema+json", pipeline.Schema())
}

// forms are the two ways to write the same document.
func (t textView) forms() ui.Filters {
	return ui.Filters{Label: "How it is written", Items: []ui.Filter{
		{Text: "YAML", Href: t.d.path("text") + "?as=yaml", Here: t.YAML}, {Text: "JSON", Href: t.d.path("text") + "?as=json", Here: !t.YAML},
	}}
}

func (t textView) hidden() []ui.Hidden {
	as := "yaml"
	if !t.YAML {
		as = "json"
	}
	return []ui.Hidden{{Name: "key", Value: t.d.Key}, {Name: "seen", Value: strconv.FormatInt(t.d.Draft.Revision, 10)}, {Name: "as", Value: as}}
}

// lines are problems with the lines they are at.
func (t textView) lines() []ui.CheckLine {
	var out []ui.CheckLine
	for _, one := range t.Problems {
		text := ui.Sentence{}
		if one.Line > 0 {
			text = append(text, ui.Strong("Line "+ui.Count(int64(one.Line))+"."), ui.Plain(" "))
		}
		out = append(out, ui.CheckLine{Status: severityStatus(one.Severity), Text: append(text, ui.Name(one.Message))})
	}
	return out
}

// field is the text itself.
func (t textView) field() ui.Field {
	return ui.Field{Kind: ui.LongField, Name: "text", Label: "The pipeline as text", Rows: 32, Value: t.Text,
		Help: "It is the same draft as in the forms. Comments are not kept; put them into “note”."}
}
