package web

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"tollgate/app/engine"
	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/web/ui"
)

// lineageView answers where a step's result comes from.
type lineageView struct {
	r *runView
	engine.Lineage
	byRow map[engine.StepRunID]engine.Origin
}

// originFold is the answer as a part of the panel.
func (p *panelView) originFold() ui.Fold {
	if p.Lineage == nil {
		return ui.Fold{}
	}
	view := lineageView{p.r, *p.Lineage, map[engine.StepRunID]engine.Origin{}}
	for _, origin := range view.Origins {
		view.byRow[origin.Row.ID] = origin
	}
	return ui.Fold{ID: "fold-origin", Title: "Where does this come from?", Body: lineageBody(view)}
}

// fields tell what each field was made of. Those that were made alike share a line.
func (l lineageView) fields() []ui.Row {
	own := l.Origins[0]
	var rows []ui.Row
	for _, field := range l.Fields {
		name, says := sentenceCase(spaced(field.Field.Title())), l.made(own, field.Reads, field.Field.Name)
		if last := len(rows) - 1; last >= 0 && slices.Equal(rows[last].Reason, says) {
			rows[last].Name += ", " + inSentenceCase(name)
			continue
		}
		rows = append(rows, ui.Row{Name: name, Reason: says})
	}
	if len(rows) == 0 {
		rows = append(rows, ui.Row{Name: "All of it", Reason: l.made(own, own.Reads, "")})
	}
	return rows
}

// behind are the steps that went into it, the nearest first.
func (l lineageView) behind() []ui.Row {
	var rows []ui.Row
	for _, origin := range l.Origins[1:] {
		rows = append(rows, ui.Row{
			Name: l.title(origin), Href: l.r.path("steps", origin.Row.ID.String()),
			Reason: l.made(origin, origin.Reads, ""), EndNote: "v" + strconv.Itoa(origin.Version),
		})
	}
	return rows
}

// title is a step with its place: Step 2a “Read the invoice”, item 3.
func (l lineageView) title(o engine.Origin) string {
	title := sentenceCase(called(o.Node.Number, o.Node.Step.Name))
	for i := len(o.Around) - 1; i >= 0; i-- {
		if engine.IsPart(o.Around[i].Kind) {
			return title + ", " + inSentenceCase(partName(l.Program, o.Around[i]))
		}
	}
	return title
}

// given names the fields of the run's input that went into it.
func (l lineageView) given() ui.Sentence {
	var names ui.Sentence
	told := map[string]bool{}
	for _, origin := range l.Origins {
		for _, read := range origin.Reads {
			if read.Ref.Root != "input" || told[inputField(read.Ref)] {
				continue
			}
			told[inputField(read.Ref)] = true
			if len(names) > 0 {
				names = append(names, ui.Plain(", "))
			}
			names = append(names, l.inputWords(read.Ref)...)
		}
	}
	if len(names) == 0 {
		return nil
	}
	run := l.Run
	when := ui.Plain(", given at the start, " + inSentence(ui.When(run.CreatedAt, l.r.Now, l.r.v.zone())))
	if run.StartedName == "" {
		return append(names, when)
	}
	return append(names, when, ui.Plain(", by "), ui.Name(run.StartedName))
}

func inputField(ref expr.Ref) string {
	if len(ref.Path) == 0 {
		return ""
	}
	return ref.Path[0]
}

func (l lineageView) inputWords(ref expr.Ref) ui.Sentence {
	if len(ref.Path) == 0 {
		return ui.Words("all of it")
	}
	return ui.Sentence{ui.Plain("“"), ui.Name(fieldTitle(l.Program.Document().Input, ref.Path[0])), ui.Plain("”")}
}

// made tells who and what made a field, or all, of what a step gave.
func (l lineageView) made(o engine.Origin, reads []engine.Read, field string) ui.Sentence {
	from := l.readWords(reads)
	var out ui.Sentence
	switch kind := o.Node.Kind(); {
	case o.Row.State == engine.StepSkipped:
		out = ui.Words("Left out, and this was given instead")
	case o.Row.Caught():
		out = from.behind([2]string{"It failed, and was handled by ", "It failed, and this was taken instead"})
	case kind == pipeline.KindAI && o.Row.AnsweredByPeople():
		out = ui.Sentence{ui.Name(sentenceCase(strings.TrimSuffix(o.Row.Note, ".")))}
	case kind == pipeline.KindAI:
		out = l.answered(o, from)
	case kind == pipeline.KindReview:
		out = l.reviewed(o, from, field)
	case kind == pipeline.KindEvent:
		out = l.came(o)
	case kind == pipeline.KindChild && o.Child != nil:
		out = l.handedBack(*o.Child, from)
	case kind == pipeline.KindEach:
		out = append(ui.Words(ui.Plural(int64(o.Parts), "item", "items")+" gave results. Read for the list, and for its first item: "), or(from, "nothing")...)
	default:
		out = from.behind(madeWords[kind])
	}
	if o.Row.Note != "" {
		out = append(out, ui.Plain(". "), ui.Name(sentenceCase(o.Row.Note)))
	}
	if o.Reused != nil {
		out = append(append(out, ui.Plain(". ")), l.r.reusedWords(*o.Reused)...)
	}
	return append(out, ui.Plain("."))
}

// read is what was read, in words; it may be nothing.
type read ui.Sentence

// madeWords lead in what a step's result was made of, and say what it is without.
var madeWords = map[pipeline.Kind][2]string{
	pipeline.KindSet:      {"Worked out from ", "A fixed value"},
	pipeline.KindEmail:    {"As it was sent, with ", "As it was sent"},
	pipeline.KindBranch:   {"Decided by ", "The way that is always taken"},
	pipeline.KindRepeat:   {"From the round that it went on with: ", "Of the round that it went on with"},
	pipeline.KindParallel: {"From its branches: ", "From its branches"},
	pipeline.KindHTTP:     {"As the other system answered, asked with ", "As the other system answered"},
}

// behind puts words before what was read, or says what there is without.
func (r read) behind(words [2]string) ui.Sentence {
	if words[0] == "" {
		words = [2]string{"From ", "From nothing but the step itself"}
	}
	if len(r) == 0 {
		return ui.Words(words[1])
	}
	return append(ui.Words(words[0]), r...)
}

func or(r read, nothing string) ui.Sentence {
	if len(r) == 0 {
		return ui.Words(nothing)
	}
	return ui.Sentence(r)
}

func (l lineageView) answered(o engine.Origin, from read) ui.Sentence {
	models := o.Models
	if len(models) == 0 {
		models = o.Node.AI().Models[:1]
	}
	var names []string
	for _, model := range models {
		names = append(names, modelName(model))
	}
	out := ui.Sentence{ui.Plain("Answered by "), ui.Name(names[len(names)-1])}
	if len(names) > 1 {
		out = append(out, ui.Plain(", after "), ui.Name(strings.Join(names[:len(names)-1], ", ")))
	}
	out = append(out, ui.Plain(" to the prompt"))
	return append(out, from.behind([2]string{" made from ", ", which is always the same"})...)
}

// reviewed tells who decided, and of a field who changed it.
func (l lineageView) reviewed(o engine.Origin, from read, field string) ui.Sentence {
	if o.Review == nil {
		return from.behind([2]string{"From ", "Decided"})
	}
	who, silent := ui.Sentence{ui.Plain("Nobody answered in time")}, true
	if n := len(o.Review.Answers); n > 0 {
		last := o.Review.Answers[n-1]
		who, silent = ui.Sentence{ui.Strong(last.Name), ui.Plain(" " + inSentenceCase(saidVerdict(last.Verdict)) + ", " + inSentence(ui.When(last.At, l.r.Now, l.r.v.zone())))}, false
	}
	changes := l.changed(*o.Review, field)
	switch {
	case len(changes) > 0:
		who = append(append(who, ui.Plain(": ")), changes...)
	case !silent && isEditable(*o.Review, field):
		who = append(who, ui.Plain(", as it was proposed"))
	}
	if len(from) == 0 {
		return who
	}
	lead := ". Shown was "
	if isEditable(*o.Review, field) {
		lead = ". Proposed from "
	}
	return append(append(who, ui.Plain(lead)), from...)
}

func isEditable(detail review.Detail, field string) bool {
	return slices.ContainsFunc(detail.Content.Editable, func(f review.EditableField) bool { return f.Name == field })
}

// changed says what was changed of a field, or of all: from what to what.
func (l lineageView) changed(detail review.Detail, field string) ui.Sentence {
	var out ui.Sentence
	for _, editable := range detail.Content.Editable {
		if field != "" && editable.Name != field {
			continue
		}
		for _, answer := range detail.Answers {
			edit, ok := answer.Edits[editable.Name]
			if !ok {
				continue
			}
			if len(out) > 0 {
				out = append(out, ui.Plain("; "))
			}
			out = append(out, ui.Plain("“"), ui.Name(spaced(editable.Label)), ui.Plain("” from "), ui.Name(changeWords(editable.Value)), ui.Plain(" to "), ui.Strong(changeWords(edit)))
		}
	}
	return out
}

// changeWords is a value of a form in a few words.
func changeWords(value json.RawMessage) string {
	if words := shortValue(value); words != "" {
		return words
	}
	return "nothing"
}

func (l lineageView) came(o engine.Origin) ui.Sentence {
	switch {
	case o.Event == nil && o.Row.Note != "":
		return ui.Words("No event was taken")
	case o.Event == nil:
		return ui.Words("No event came in time, or it is not kept any more")
	}
	return ui.Sentence{
		ui.LinkTo("The event", l.r.v.path("events", o.Event.ID.String())), ui.Plain(" that "), ui.Name(o.Event.Sender),
		ui.Plain(" sent " + inSentence(ui.When(o.Event.SentAt, l.r.Now, l.r.v.zone()))),
	}
}

// handedBack names the run whose result it is.
func (l lineageView) handedBack(child engine.ChildOrigin, from read) ui.Sentence {
	out := ui.Sentence{
		ui.Plain("As "), ui.LinkTo("run #"+strconv.FormatInt(child.Number, 10), l.r.v.path("runs", child.Run.String())), ui.Plain(" of “"), ui.Name(child.Pipeline), ui.Plain("” gave it"),
	}
	if len(from) == 0 {
		return out
	}
	return append(append(out, ui.Plain(", started with ")), from...)
}

// readWords name what was read by the words that people gave, each once.
func (l lineageView) readWords(reads []engine.Read) read {
	var out ui.Sentence
	told := map[string]bool{}
	for _, one := range reads {
		words := l.oneRead(one)
		if told[words.String()] {
			continue
		}
		told[words.String()] = true
		if len(out) > 0 {
			out = append(out, ui.Plain(", "))
		}
		out = append(out, words...)
	}
	return read(out)
}

func (l lineageView) oneRead(one engine.Read) ui.Sentence {
	ref := one.Ref
	switch ref.Root {
	case "input":
		return append(l.inputWords(ref), ui.Plain(" of the input"))
	case "item":
		return ui.Sentence{ui.Plain("the item of “"), ui.Name(l.nameOf(one.Row)), ui.Plain("”")}
	case "index":
		return ui.Words("the item’s place in the list")
	case "round":
		return ui.Words("the number of the round")
	case "error":
		return ui.Words("what had failed")
	case "run":
		return ui.Words("what is known of the run")
	}
	if len(ref.Path) == 0 {
		return ui.Words("the steps before")
	}
	node := l.Program.Node(ref.Path[0])
	if node == nil {
		return ui.Words("a step that is gone")
	}
	step := ui.Sentence{ui.Plain("“"), ui.Name(node.Step.Name), ui.Plain("”")}
	if one.Row.IsZero() {
		step = append(step, ui.Plain(", which had not run"))
	}
	if len(ref.Path) == 1 {
		return step
	}
	return append(ui.Sentence{ui.Plain("“"), ui.Name(sentenceCase(fieldTitle(pipeline.Outputs(*node.Step), ref.Path[1]))), ui.Plain("” of ")}, step...)
}

func (l lineageView) nameOf(row engine.StepRunID) string {
	if origin, ok := l.byRow[row]; ok {
		return origin.Node.Step.Name
	}
	return "the list"
}

// reusedWords tell whose answer was taken over, and what that saved.
func (r *runView) reusedWords(from engine.ReusedOrigin) ui.Sentence {
	out := ui.Sentence{ui.Plain("Taken from "), ui.LinkTo("run #"+strconv.FormatInt(from.Number, 10), r.v.path("runs", from.Run.String(), "steps", from.Step.String()))}
	if from.Pipeline != r.View.Run.PipelineName {
		out = append(out, ui.Plain(" of “"), ui.Name(from.Pipeline), ui.Plain("”"))
	}
	if from.CostMicros > 0 && r.v.maySeeMoney() {
		out = append(out, ui.Plain(", saved "+ui.Dollars(from.CostMicros)))
	}
	return out
}
