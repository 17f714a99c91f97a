package web

import (
	"slices"
	"strings"

	"github.com/a-h/templ"

	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// describe is the form of a step: its name, the settings of its kind, and what all kinds
// share.
func (f *stepForm) describe(step *pipeline.Step) {
	f.words(ui.Field{Name: "name", Label: "Name", MaxLength: pipeline.MaxName}, &step.Name)
	switch with := step.With.(type) {
	case *pipeline.AI:
		f.ai(with)
	case *pipeline.Review:
		f.review(with)
	case *pipeline.Branch:
		f.branch(with)
	case *pipeline.Repeat:
		f.repeat(with)
	case *pipeline.Each:
		f.each(with)
	case *pipeline.Parallel:
		f.parallel(with)
	case *pipeline.Wait:
		f.wait(with)
	case *pipeline.Event:
		f.event(with)
	case *pipeline.HTTP:
		f.http(with)
	case *pipeline.Email:
		f.email(with)
	case *pipeline.Set:
		f.valueRows("with.values", "What it works out", "Later steps use each by its name.", "Add a value", pipeline.ListRoot, &with.Values)
	case *pipeline.Child:
		f.child(with)
	case *pipeline.Emit:
		f.emit(with)
	case *pipeline.Stop:
		f.stop(with)
	}
	f.shared(step)
}

func (f *stepForm) ai(with *pipeline.AI) {
	f.text(ui.Field{Kind: ui.LongField, Rows: 5, Name: "with.instructions", Label: "What should the AI do?",
		Help: "Plain words. Values of earlier steps go in by “Insert data”."}, &with.Instructions)
	f.text(ui.Field{Kind: ui.LongField, Rows: 5, Name: "with.prompt", Label: "What should it read?",
		Help: "The data it works on."}, &with.Prompt)
	f.formulaRows("with.files", "Files it should read (images, PDF)",
		"Only for models that take files. For a PDF, money is reserved for all that the model can read at once.", "Add a file", isFile, &with.Files)
	f.fieldRows("with.answer", "What should it answer?", "A field for each value that later steps use. Without any it answers in free text.", false, &with.Answer)
	f.models(with)
	f.oneLine("with.limits", "Limits", "", func() {
		f.dollars(ui.Field{Name: "with.max_cost", Label: "At most, each time", Optional: true}, &with.MaxCost)
		f.whole(ui.Field{Name: "with.max_tokens", Label: "Longest answer, in tokens", Optional: true, Placeholder: "2048"}, &with.MaxTokens)
	})
	choose(f, ui.Field{Name: "with.if_missing", Label: "If a field cannot be filled", Compact: true, None: "Fail the step", Options: []ui.Option{
		{Value: string(pipeline.MissingEmpty), Label: "Leave it empty"}, {Value: string(pipeline.MissingAsk), Label: "Ask a person"},
	}}, &with.IfMissing)
	choose(f, ui.Field{Name: "with.on_refusal", Label: "If the AI declines", Compact: true, None: "Fail the step", Options: []ui.Option{
		{Value: string(pipeline.RefusalNext), Label: "Ask the next model"}, {Value: string(pipeline.RefusalAsk), Label: "Ask a person"},
	}}, &with.OnRefusal)
	if with.OnRefusal == pipeline.RefusalAsk || with.IfMissing == pipeline.MissingAsk || len(with.Ask) > 0 {
		f.people("with.ask", "Who is asked then?", "Nobody named: the owners and admins.", &with.Ask)
	}
	choose(f, ui.Field{Name: "with.keep", Label: "What is kept of each call", Compact: true, None: "All that the provider sent", Options: []ui.Option{
		{Value: string(pipeline.KeepAnswer), Label: "Only the answer"}, {Value: string(pipeline.KeepSent), Label: "What was sent, too"},
	}}, &with.Keep)
	f.fold("reuse", "Earlier answers", onOff(with.Reuse), with.Reuse, func() {
		f.tick(ui.Field{Name: "with.reuse", Label: "Take an identical earlier answer, for nothing"}, &with.Reuse)
		f.span(ui.Field{Name: "with.reuse_for", Label: "Not older than", Optional: true, Placeholder: "7d"}, &with.ReuseFor)
	})
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// models are tried one after the other.
func (f *stepForm) models(with *pipeline.AI) {
	rows(f, rowList[string]{
		Name: "with.models", Label: "Model", Help: "Where there are several, each is asked where the one before could not answer.",
		Columns: []string{""}, Shape: "one", Add: "Add a model to fall back to", First: true, Ordered: true,
		Blank: func() string { return "" }, Keep: func(model string) bool { return model != "" },
		Draw: func(f *stepForm, at string, row *string) ([]templ.Component, templ.Component) {
			return []templ.Component{f.cell(func() {
				choose(f, ui.Field{Name: at, Label: "Model", Compact: true, None: "Choose a model", Options: f.d.modelOptions()}, row)
			})}, nil
		},
	}, &with.Models)
}

func (d *draftView) modelOptions() []ui.Option {
	var out []ui.Option
	for _, model := range offered(d.Models, d.Draft.Draft.Models()) {
		out = append(out, ui.Option{Value: model.ID, Label: model.Name})
	}
	return out
}

func (f *stepForm) review(with *pipeline.Review) {
	f.text(ui.Field{Name: "with.question", Label: "What is to be decided?", Help: "One question, such as “Shall we pay this invoice?”."}, &with.Question)
	f.people("with.people", "Who is asked?", "", &with.People)
	f.oneLine("with.policy", "How many must agree?", "", func() {
		choose(f, ui.Field{Name: "with.policy.rule", Label: "Rule", Compact: true, None: "One is enough", Options: []ui.Option{
			{Value: string(pipeline.PolicyAll), Label: "All of them"}, {Value: string(pipeline.PolicyN), Label: "As many as …"},
		}}, &with.Policy.Rule)
		f.whole(ui.Field{Name: "with.policy.n", Label: "How many", Optional: true, Needed: "for “as many as”"}, &with.Policy.N)
	})
	f.oneLine("with.deadline", "Deadline", "", func() {
		f.span(ui.Field{Name: "with.due", Label: "Answer within", Optional: true}, &with.Due)
		choose(f, ui.Field{Name: "with.on_deadline", Label: "Without an answer", Compact: true, None: "The step fails", Options: []ui.Option{
			{Value: string(pipeline.DeadlineReject), Label: "It counts as a no"}, {Value: string(pipeline.DeadlineContinue), Label: "The run goes on, and knows"},
			{Value: string(pipeline.DeadlineApprove), Label: "It counts as a yes"},
		}}, &with.OnDeadline)
	})
	f.text(ui.Field{Kind: ui.LongField, Name: "with.body", Label: "What should they know?", Optional: true}, &with.Body)
	f.facts(&with.Facts)
	f.proposal(with)
	f.editable(&with.Editable)
	f.fold("review-more", "Words, consequences and proof", "", false, func() { f.reviewMore(with) })
}

func (f *stepForm) reviewMore(with *pipeline.Review) {
	f.tick(ui.Field{Name: "with.allow_requester", Label: "Who started the run may decide, too"}, &with.AllowRequester)
	f.oneLine("with.labels", "Words on the buttons", "Their meaning stays.", func() {
		f.words(ui.Field{Name: "with.labels.approve", Label: "For yes", Optional: true, Placeholder: "Approve"}, &with.Labels.Approve)
		f.words(ui.Field{Name: "with.labels.reject", Label: "For no", Optional: true, Placeholder: "Reject"}, &with.Labels.Reject)
	})
	f.text(ui.Field{Name: "with.consequences.approve", Label: "What a yes leads to", Optional: true}, &with.Consequences.Approve)
	f.text(ui.Field{Name: "with.consequences.reject", Label: "What a no leads to", Optional: true}, &with.Consequences.Reject)
	f.text(ui.Field{Name: "with.consequences.silence", Label: "What silence leads to", Optional: true}, &with.Consequences.Silence)
	choose(f, ui.Field{Name: "with.proof", Label: "How do they show who they are?", Compact: true, None: "By the link of their mail", Options: []ui.Option{
		{Value: string(pipeline.ProofSignIn), Label: "By signing in"},
	}}, &with.Proof)
}

func (f *stepForm) facts(to *[]pipeline.Fact) {
	rows(f, rowList[pipeline.Fact]{
		Name: "with.facts", Label: "Facts to show", Columns: []string{"Words", "Value"}, Shape: "pairs", Add: "Add a fact",
		Blank: func() pipeline.Fact { return pipeline.Fact{} }, Keep: func(one pipeline.Fact) bool { return one != pipeline.Fact{} },
		Draw: func(f *stepForm, at string, row *pipeline.Fact) ([]templ.Component, templ.Component) {
			return []templ.Component{
				f.cell(func() { f.words(ui.Field{Name: at + ".label", Label: "Words"}, &row.Label) }),
				f.cell(func() {
					f.formula(ui.Field{Name: at + ".formula", Label: "Value"}, &row.Formula, pipeline.ListRoot, nil)
				}),
			}, nil
		},
	}, to)
}

// proposal is what is judged, with the step that wrote it.
func (f *stepForm) proposal(with *pipeline.Review) {
	proposal := pipeline.Proposal{}
	if with.Proposal != nil {
		proposal = *with.Proposal
	}
	f.text(ui.Field{Kind: ui.LongField, Name: "with.proposal.text", Label: "What is proposed", Optional: true}, &proposal.Text)
	var writers []ui.Option
	for _, one := range f.dataAt(pipeline.ListRoot) {
		if node := f.d.Sketch.Node(one.Step); one.Step != "" && node != nil && node.Kind() == pipeline.KindAI &&
			!slices.ContainsFunc(writers, func(o ui.Option) bool { return o.Value == one.Step }) {
			writers = append(writers, ui.Option{Value: one.Step, Label: node.Number + " " + node.Step.Name})
		}
	}
	if len(writers) > 0 || proposal.From != "" {
		choose(f, ui.Field{Name: "with.proposal.from", Label: "Written by", Compact: true, None: "Nobody in particular", Optional: true, Options: writers}, &proposal.From)
	}
	if f.sent != nil {
		with.Proposal = nil
		if strings.TrimSpace(proposal.Text) != "" {
			with.Proposal = &proposal
		}
	}
}

func (f *stepForm) editable(to *[]pipeline.Editable) {
	rows(f, rowList[pipeline.Editable]{
		Name: "with.editable", Label: "What they may change", Columns: []string{"Field", "Type", "Meaning"}, Shape: "fields", Add: "Add a field",
		Blank: func() pipeline.Editable {
			return pipeline.Editable{Field: pipeline.Field{Type: pipeline.TypeText, Required: true}}
		},
		Keep: func(one pipeline.Editable) bool { return one.Field.Name != "" },
		Draw: func(f *stepForm, at string, row *pipeline.Editable) ([]templ.Component, templ.Component) {
			cells, below := f.fieldCells(at+".field", false, &row.Field)
			value := f.cell(func() {
				f.formula(ui.Field{Name: at + ".formula", Label: "Proposed value"}, &row.Formula, pipeline.ListRoot, nil)
			})
			return cells, templ.Join(value, below)
		},
	}, to)
}

func (f *stepForm) email(with *pipeline.Email) {
	f.textRows("with.to", "To", "An address, or data that holds one.", "Add an address", true, &with.To)
	f.text(ui.Field{Name: "with.subject", Label: "Subject"}, &with.Subject)
	f.text(ui.Field{Kind: ui.LongField, Rows: 8, Name: "with.body", Label: "Text"}, &with.Body)
	f.fold("email-more", "Copies, reply address, files", "", len(with.CC)+len(with.Attachments) > 0, func() {
		f.textRows("with.cc", "Copy to", "", "Add a copy", false, &with.CC)
		f.text(ui.Field{Name: "with.reply_to", Label: "Reply to", Optional: true}, &with.ReplyTo)
		f.formulaRows("with.attachments", "Files", "", "Add a file", isFile, &with.Attachments)
	})
}

// formulaRows are values to pick, one a row.
func (f *stepForm) formulaRows(name, label, help, add string, fits func(pipeline.Datum) bool, to *[]string) {
	rows(f, rowList[string]{
		Name: name, Label: label, Help: help, Columns: []string{""}, Shape: "one", Add: add,
		Blank: func() string { return "" }, Keep: func(s string) bool { return s != "" },
		Draw: func(f *stepForm, at string, row *string) ([]templ.Component, templ.Component) {
			return []templ.Component{f.cell(func() { f.formula(ui.Field{Name: at, Label: label}, row, pipeline.ListRoot, fits) })}, nil
		},
	}, to)
}
