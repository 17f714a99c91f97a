package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
)

// AIInput is what a model is given, as stored and shown on the run's page.
type AIInput struct {
	Models       []string         `json:"models"`
	Instructions string           `json:"instructions,omitempty"`
	Prompt       string           `json:"prompt"`
	Files        []FileRef        `json:"files,omitempty"`  // images and documents to read, beside the prompt
	Answer       []pipeline.Field `json:"answer,omitempty"` // the asked fields; none asks for text
	MaxTokens    int              `json:"max_tokens"`
	Problem      string           `json:"problem,omitempty"` // with the answer before, where the same model is asked anew
	Sample       json.RawMessage  `json:"sample,omitempty"`  // recorded answer, for a run on the pipeline's own sample
}

// EmailInput is a mail that a step sends.
type EmailInput struct {
	To      []string `json:"to"`
	CC      []string `json:"cc,omitempty"`
	ReplyTo string   `json:"reply_to,omitempty"`
	Subject string   `json:"subject"`
	Body    string   `json:"body"`

	Attachments []FileRef `json:"attachments,omitempty"`
}

// callInput works out what a step's outside call is given.
func (d *decider) callInput(node *pipeline.Node, group *frame) ([]byte, *Failure) {
	var input any
	var err error
	switch node.Kind() {
	case pipeline.KindAI:
		input, err = d.aiInput(node, group)
	case pipeline.KindHTTP:
		input, err = d.httpInput(node.HTTP())
	default:
		input, err = d.emailInput(node.Email())
	}
	if err != nil {
		failure := formulaFailure(err)
		return nil, &failure
	}
	encoded, err := json.Marshal(input)
	if err != nil {
		failure := formulaFailure(err)
		return nil, &failure
	}
	if len(encoded) > MaxValue {
		return nil, &Failure{Class: ClassTooLarge, Message: "What the step would hand on is larger than 32 MiB. Hand on less data."}
	}
	return encoded, nil
}

func (d *decider) aiInput(node *pipeline.Node, group *frame) (AIInput, error) {
	ask := node.AI()
	input := AIInput{Models: ask.Models, Answer: ask.Answer, MaxTokens: ask.MaxTokens}
	if ask.IfMissing == pipeline.MissingEmpty && d.chains(node) {
		input.Answer = mayBeEmpty(ask.Answer)
	}
	var err error
	if input.Instructions, err = d.render("the instructions", ask.Instructions); err != nil {
		return input, err
	}
	if input.Prompt, err = d.render("the prompt", ask.Prompt); err != nil {
		return input, err
	}
	if input.Files, err = d.files("a file to read", ask.Files); err != nil {
		return input, err
	}
	if err = fitFiles(input.Files); err != nil {
		return input, err
	}
	if sample := d.program.Document().Sample; d.run.Sample && sample != nil {
		input.Sample = sample.Answer(node.ID(), group.turn())
	}
	return input, nil
}

// mayBeEmpty are fields of which a model may leave any empty.
func mayBeEmpty(fields []pipeline.Field) []pipeline.Field {
	out := slices.Clone(fields)
	for i := range out {
		out[i].Required = false
	}
	return out
}

func (d *decider) emailInput(mail *pipeline.CompiledEmail) (EmailInput, error) {
	var input EmailInput
	var err error
	if input.To, err = d.addresses(mail.To); err != nil {
		return input, err
	}
	if input.CC, err = d.addresses(mail.CC); err != nil {
		return input, err
	}
	if input.ReplyTo, err = d.render("the reply address", mail.ReplyTo); err != nil {
		return input, err
	}
	if input.Subject, err = d.render("the subject", mail.Subject); err != nil {
		return input, err
	}
	if input.Body, err = d.render("the text", mail.Body); err != nil {
		return input, err
	}
	input.Attachments, err = d.files("an attachment", mail.Attachments)
	return input, err
}

// render fills a text in; none is empty.
func (d *decider) render(place string, text *expr.Text) (string, error) {
	if text == nil {
		return "", nil
	}
	out, err := text.Render(context.Background(), d.vars)
	if err != nil {
		return "", fmt.Errorf("In %s: %w", place, err)
	}
	return out, nil
}

// addresses fills texts in that may each name several addresses apart by commas.
func (d *decider) addresses(texts []*expr.Text) ([]string, error) {
	var out []string
	for _, text := range texts {
		line, err := d.render("the address", text)
		if err != nil {
			return nil, err
		}
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.TrimSpace(one); one != "" {
				out = append(out, one)
			}
		}
	}
	return out, nil
}

// reviewDraft is a question to people whose texts are filled in; whom its roles mean is
// looked up when it is opened.
type reviewDraft struct {
	node     *pipeline.Node
	ask      *pipeline.CompiledReview
	catch    pipeline.ListKey // of the entry of on_error that asks; empty: the step itself does
	question string
	body     string
	facts    []draftFact
	proposal string
	editable []draftField
	people   []draftPerson
	approve  string
	reject   string
	silence  string
	due      *time.Time
	round    int // 0: the step run has never asked before; its question is the first
}

// bar names what cannot begin where nobody can be asked.
func (r reviewDraft) bar() string { return r.node.ID() + string(r.catch) }

type draftFact struct{ label, value string }

type draftField struct {
	field pipeline.Field
	value json.RawMessage
}

type draftPerson struct {
	emails   []string
	user     string
	role     string
	everyone bool
}

func (d *decider) reviewDraft(node *pipeline.Node, ask *pipeline.CompiledReview) (reviewDraft, *Failure) {
	draft := reviewDraft{node: node, ask: ask}
	if ask.Due > 0 {
		due := d.now.Add(ask.Due)
		draft.due = &due
	}
	for _, part := range []struct {
		to    *string
		place string
		text  *expr.Text
	}{
		{&draft.question, "the question", ask.Question}, {&draft.body, "the text", ask.Body},
		{&draft.proposal, "the proposal", ask.Proposal}, {&draft.approve, "“what yes leads to”", ask.OnApprove},
		{&draft.reject, "“what no leads to”", ask.OnReject}, {&draft.silence, "“what silence leads to”", ask.OnSilence},
	} {
		text, err := d.render(part.place, part.text)
		if err != nil {
			failure := formulaFailure(err)
			return draft, &failure
		}
		*part.to = text
	}
	if err := d.fillDraft(&draft, ask); err != nil {
		failure := formulaFailure(err)
		return draft, &failure
	}
	return draft, nil
}

// fillDraft works out facts, editable fields and people.
func (d *decider) fillDraft(draft *reviewDraft, ask *pipeline.CompiledReview) error {
	for _, fact := range ask.Facts {
		value, err := fact.Value.Eval(context.Background(), d.vars)
		if err != nil {
			return fmt.Errorf("In the fact “%s”: %w", fact.Label, err)
		}
		words, err := expr.Words(value)
		if err != nil {
			return err
		}
		draft.facts = append(draft.facts, draftFact{fact.Label, words})
	}
	for _, editable := range ask.Editable {
		value, err := editable.Value.Eval(context.Background(), d.vars)
		if err != nil {
			return fmt.Errorf("In the field “%s”: %w", editable.Field.Title(), err)
		}
		encoded, err := expr.EncodeJSON(value)
		if err != nil {
			return err
		}
		draft.editable = append(draft.editable, draftField{editable.Field, encoded})
	}
	var err error
	draft.people, err = d.draftPeople(ask.People)
	return err
}

func (d *decider) draftPeople(people []pipeline.CompiledPerson) ([]draftPerson, error) {
	var drafts []draftPerson
	for _, person := range people {
		entry := draftPerson{user: person.User, role: person.Role, everyone: person.Everyone}
		if person.Email != nil {
			emails, err := d.addresses([]*expr.Text{person.Email})
			if err != nil {
				return nil, err
			}
			entry.emails = emails
		}
		drafts = append(drafts, entry)
	}
	return drafts, nil
}
