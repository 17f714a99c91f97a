package web

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// news is all that the sentence about a run is made of: what it waits for, since when,
// and what happens next.
type news struct {
	engine.Line
	Number   string // of the step that the line is about: "3a"
	Next     string // the step behind it, as it is called in sentences; empty at the end
	NextNode *pipeline.Node
	Within   string // what ends behind the last step, where that is not the run: "this item"
	Part     bool   // it is about a part of a run
	Fresh    bool   // no step has begun
	Tries    int    // how often the step is tried at most
	Asked    []review.Asked
	Silence  pipeline.DeadlineAction // what no answer leads to
	Me       tenants.UserID          // who reads it
}

// newsOf completes a line of a list with what its program and its reviews say.
func newsOf(line engine.Line, program *pipeline.Program, asked []review.Asked, me tenants.UserID) news {
	n := news{Line: line, Asked: asked, Me: me, Tries: engine.MaxTries(nil)}
	n.Fresh = line.Standing == engine.StandingQueued && line.StepID == "" && line.Since.Equal(line.Run.CreatedAt)
	node := program.Node(line.StepID)
	if node == nil {
		return n
	}
	n.Number, n.Tries = node.Number, engine.MaxTries(node)
	if ask := node.Review(); ask != nil {
		n.Silence = ask.OnDeadline
	} else if waits, ok := node.Step.With.(*pipeline.Event); ok {
		n.Silence = waits.OnDeadline
	}
	if next := follower(program, node); next != nil {
		n.Next, n.NextNode = stepTitle(next), next
	}
	return n
}

// follower is the step that comes after a node whatever is decided, nil at the end.
func follower(program *pipeline.Program, node *pipeline.Node) *pipeline.Node {
	for ; node != nil; node = node.Parent {
		list := program.Roots()
		if node.Parent != nil {
			list = node.Parent.Child(node.List).Nodes
		}
		if node.Index+1 < len(list) {
			return list[node.Index+1]
		}
	}
	return nil
}

// stepTitle is how a step is called inside a sentence.
func stepTitle(node *pipeline.Node) string { return called(node.Number, node.Step.Name) }

// called is how a step is named in running text; steps of lists have no number at hand.
func called(number, name string) string {
	if number == "" {
		return "“" + name + "”"
	}
	return "step " + number + " “" + name + "”"
}

func (n news) step() string { return called(n.Number, n.StepName) }

// sentence is the one at the head of a run's page.
func (n news) sentence(now time.Time, zone *time.Location) ui.Sentence {
	c := clock{now, zone}
	switch n.Standing {
	case engine.StandingQueued:
		return n.queued(c)
	case engine.StandingRunning:
		return append(ui.Sentence{ui.Strong("Working on " + n.step()), ui.Plain(c.lasting(n.Since) + ". ")}, n.then()...)
	case engine.StandingPerson:
		return n.person(c)
	case engine.StandingRetrying:
		return append(ui.Sentence{
			ui.Strong("Retrying " + n.step()), ui.Plain(c.since(n.Since) + ": " + n.nextTry(c) + ". Last try: "),
			ui.Name(n.Reason), ui.Plain(" "),
		}, n.then()...)
	case engine.StandingCapped:
		return ui.Sentence{
			ui.Strong("Stopped by the cap"), ui.Plain(" before "), ui.Name(n.step()), ui.Plain(c.lasting(n.Since) + ". "), ui.Name(n.Reason),
			ui.Plain(" It goes on by itself once the cap allows it; what was paid for is kept."),
		}
	case engine.StandingWaiting:
		if n.Wait == engine.WaitEvent {
			return n.event(c)
		}
		return append(ui.Sentence{
			ui.Strong(n.waited(c)), ui.Plain(" at "), ui.Name(n.step()), ui.Plain("," + c.since(n.Since) + ". "),
		}, append(n.limitWords(), n.then()...)...)
	case engine.StandingPaused:
		if n.Run.State == engine.RunPausing {
			return ui.Sentence{ui.Strong("Pausing"), ui.Plain(": the steps under way are finished first. Then nothing begins until somebody resumes it.")}
		}
		return ui.Sentence{ui.Strong("Paused"), ui.Plain(c.since(n.Since) + ". Nothing begins until somebody resumes it.")}
	}
	return n.ended(c)
}

// queued tells three things apart that look alike: not begun, between two steps, and woken.
func (n news) queued(c clock) ui.Sentence {
	if n.Run.State == engine.RunQueued {
		return ui.Sentence{ui.Strong("Queued"), ui.Plain(c.lasting(n.Since) + ". It starts when an earlier run of this pipeline has ended.")}
	}
	if n.Fresh {
		return ui.Sentence{ui.Strong("Queued"), ui.Plain(c.lasting(n.Since) + ". It starts as soon as a worker is free.")}
	}
	if n.StepName == "" {
		return ui.Sentence{ui.Strong("Ready to go on"), ui.Plain(c.since(n.Since) + ". The next step begins as soon as a worker is free.")}
	}
	return ui.Sentence{
		ui.Strong("Ready to go on"), ui.Plain(c.since(n.Since) + ": what "), ui.Name(n.step()),
		ui.Plain(" waited for is here. It goes on as soon as a worker is free."),
	}
}

// person takes the deadline from the question itself, which counts from the time when
// people could answer; the wait's own may be earlier.
func (n news) person(c clock) ui.Sentence {
	question := n.StepName
	due := n.Due
	if len(n.Asked) > 0 {
		question, due = n.Asked[0].Title, n.Asked[0].DueAt
	}
	out := ui.Sentence{
		ui.Plain("Waiting for "), ui.Strong(n.people("you", " or ")), ui.Plain(" to answer “"), ui.Name(question),
		ui.Plain("”" + c.lasting(n.Since)),
	}
	switch {
	case due == nil:
		out = append(out, ui.Plain(". There is no deadline. "))
	case due.After(c.now):
		out = append(out, ui.Plain(", due "), ui.Strong(c.when(*due)), ui.Plain("; then "+n.silence()+". "))
	default:
		out = append(out, ui.Plain(". The deadline was "), ui.Strong(c.when(*due)), ui.Plain("; now "+n.silence()+". "))
	}
	if n.Next != "" {
		out = append(out, ui.Plain("After the answer comes "), ui.Name(n.Next), ui.Plain("."))
	}
	return out
}

// people names who can still answer, the reader first.
func (n news) people(you, or string) string {
	const most = 4
	var names []string
	rest := 0
	for _, asked := range n.Asked {
		for i, name := range asked.Names {
			switch {
			case asked.Users[i] == n.Me && !n.Me.IsZero():
				names = append([]string{you}, names...)
			case len(names) < most:
				names = append(names, name)
			default:
				rest++
			}
		}
	}
	if len(names) > most {
		names, rest = names[:most], rest+len(names)-most
	}
	if rest > 0 {
		names = append(names, ui.Plural(int64(rest), "other person", "other people"))
	}
	if len(names) == 0 {
		return "somebody"
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + or + names[last]
}

// silence says what follows if nobody answers in time.
func (n news) silence() string {
	switch n.Silence {
	case pipeline.DeadlineReject:
		return "it counts as refused"
	case pipeline.DeadlineApprove:
		return "it counts as approved, by timeout"
	case pipeline.DeadlineContinue:
		return "the run goes on without an answer"
	}
	return "the run fails"
}

// nextTry counts the try that comes, and never promises less than a second.
func (n news) nextTry(c clock) string {
	try := fmt.Sprintf("try %d of %d begins", n.Attempt, n.Tries)
	if n.Due == nil || !n.Due.After(c.now) {
		return try + " now"
	}
	return try + " in " + ui.Duration(max(n.Due.Sub(c.now), time.Second))
}

// limitWords say which limit has no room for a call just now.
func (n news) limitWords() ui.Sentence {
	if n.Wait != engine.WaitRetry || n.Reason == "" {
		return nil
	}
	return ui.Sentence{ui.Name(sentenceEnd(n.Reason)), ui.Plain(" ")}
}

// waited says what a step waits for that is neither a person nor money.
func (n news) waited(c clock) string {
	switch n.Wait {
	case engine.WaitRetry:
		if n.Due != nil {
			return "Waits for the model’s rate limit until about " + n.Due.In(c.zone).Format("15:04:05 MST")
		}
		return "Waits for the model’s rate limit"
	case engine.WaitTime:
		if n.Due != nil {
			return "Waiting until " + c.when(*n.Due)
		}
		return "Waiting for its time"
	case engine.WaitEvent:
		return "Waiting for " + eventWords(n.EventName, n.EventKey)
	case engine.WaitChild:
		return "Waiting for another run to end"
	case engine.WaitSlot:
		return "Waiting for a free place"
	case engine.WaitPause:
		return "Paused"
	}
	return "Waiting"
}

// event says which event is waited for, until when, and what follows either way.
func (n news) event(c clock) ui.Sentence {
	out := ui.Sentence{ui.Strong(n.waited(c)), ui.Plain(" at "), ui.Name(n.step()), ui.Plain("," + c.since(n.Since) + n.atMost(c) + ". Once it is here, ")}
	if n.Next == "" {
		return append(out, ui.Plain("the run is done."))
	}
	return append(out, ui.Name(n.Next), ui.Plain(" comes."))
}

// eventWords name an event.
func eventWords(name, key string) string {
	if engine.IsCallback(key) {
		return "another system’s answer"
	}
	if key == "" {
		return "the event “" + name + "”"
	}
	return "the event “" + name + "” with key " + key
}

// atMost says how long an event is waited for, and what comes then.
func (n news) atMost(c clock) string {
	switch {
	case n.Wait != engine.WaitEvent:
		return ""
	case n.Due == nil:
		return ", without a deadline"
	case n.Silence == pipeline.DeadlineContinue:
		return ", until " + c.when(*n.Due) + " at most, then it goes on without"
	}
	return ", until " + c.when(*n.Due) + " at most, then the run fails"
}

// then says what comes after the step at work.
func (n news) then() ui.Sentence {
	switch {
	case n.Next == "" && n.Within != "":
		return ui.Words("After it " + n.Within + " is done.")
	case n.Next == "":
		return ui.Words("After it the run is done.")
	}
	return ui.Sentence{ui.Plain("Then comes "), ui.Name(n.Next), ui.Plain(".")}
}

// ended words the final states. Nothing happens by itself any more, and that is said.
func (n news) ended(c clock) ui.Sentence {
	when := " " + c.when(n.Since)
	took := ui.Duration(n.Since.Sub(n.Run.CreatedAt))
	switch {
	case n.Standing == engine.StandingCompleted:
		return ui.Sentence{ui.Strong("Done"), ui.Plain(when + ", " + took + " after it began. Nothing is left to do.")}
	case n.Standing == engine.StandingFailed:
		return n.failed(when)
	case n.Run.EndedAt == nil:
		return ui.Sentence{ui.Strong("Being cancelled"), ui.Plain(c.since(n.Since) + ". Calls under way end first.")}
	case n.Run.EndedBy != "":
		return ui.Sentence{ui.Strong("Cancelled by " + n.Run.EndedBy), ui.Plain(when + ". No further step runs; what was done is kept.")}
	}
	return ui.Sentence{ui.Strong("Cancelled"), ui.Plain(when + ". No further step runs; what was done is kept.")}
}

// failed gives our own words; the other side's are in the panel.
func (n news) failed(when string) ui.Sentence {
	out := ui.Sentence{ui.Strong("Failed")}
	if n.StepName != "" {
		out = ui.Sentence{ui.Strong("Failed at " + n.step())}
	}
	out = append(out, ui.Plain(when+". "))
	if n.Run.Failure != nil {
		out = append(out, ui.Name(n.Run.Failure.Message), ui.Plain(" "))
	}
	return append(out, ui.Plain("No further step runs. Try it again once the cause is gone."))
}

// reason is the sentence as lists have room for it, beside the badge.
func (n news) reason(now time.Time, zone *time.Location) ui.Sentence {
	c := clock{now, zone}
	if n.Open.Count() > 1 && n.Run.State == engine.RunRunning {
		return n.severalBrief()
	}
	switch n.Standing {
	case engine.StandingPerson:
		return n.personBrief(c)
	case engine.StandingFailed:
		if n.Run.Failure != nil {
			return n.about(n.Run.Failure.Message)
		}
	case engine.StandingCapped:
		return append(ui.Sentence{ui.Name(n.Reason)}, ui.Plain(" Goes on once the cap allows it."))
	case engine.StandingRetrying:
		return append(n.about(n.Reason), ui.Plain(" "+sentenceCase(n.nextTry(c))+"."))
	case engine.StandingRunning:
		return ui.Sentence{ui.Name(sentenceCase(n.step())), ui.Plain(c.lasting(n.Since) + ".")}
	case engine.StandingWaiting:
		return append(n.about(n.waited(c)), ui.Plain(c.since(n.Since)+n.atMost(c)+"."))
	case engine.StandingQueued:
		if n.Run.State == engine.RunQueued {
			return ui.Words("Starts when an earlier run of this pipeline has ended.")
		}
		if !n.Fresh {
			return ui.Words("Ready since " + c.brief(n.Since) + "; goes on as soon as a worker is free.")
		}
		return ui.Words("Starts as soon as a worker is free.")
	case engine.StandingPaused:
		if n.Run.State == engine.RunPausing {
			return ui.Words("The steps under way are finished first.")
		}
		return ui.Words("Since " + c.brief(n.Since) + "; goes on when somebody resumes it.")
	case engine.StandingCompleted:
		return n.completed(c)
	case engine.StandingCancelled:
		if n.Run.EndedBy != "" {
			return ui.Sentence{ui.Plain("By "), ui.Name(n.Run.EndedBy), ui.Plain(", " + c.brief(n.Since) + ".")}
		}
		return ui.Words(sentenceCase(c.brief(n.Since)) + ".")
	}
	return nil
}

// completed tells how people answered: a refused request is done, too, and must not look
// like one that was approved.
func (n news) completed(c clock) ui.Sentence {
	when := c.brief(n.Since) + ", after " + ui.Duration(n.Since.Sub(n.Run.CreatedAt)) + "."
	said, ok := map[review.Outcome]string{
		review.OutcomeApproved: "Approved", review.OutcomeRejected: "Refused", review.OutcomeTimeout: "Nobody answered in time",
	}[n.Verdict]
	if !ok {
		return ui.Words(sentenceCase(when))
	}
	if n.VerdictBy == "" {
		return ui.Words(said + "; done " + when)
	}
	return ui.Sentence{ui.Plain(said + " by "), ui.Name(n.VerdictBy), ui.Plain("; done " + when)}
}

// personBrief begins with who is asked: in a list that is what one looks for.
func (n news) personBrief(c clock) ui.Sentence {
	verb := " is asked: “"
	if who := n.people("You", " and "); strings.HasPrefix(who, "You") || strings.Contains(who, " and ") {
		verb = " are asked: “"
	}
	question, due := n.StepName, n.Due
	if len(n.Asked) > 0 {
		question, due = n.Asked[0].Title, n.Asked[0].DueAt
	}
	out := ui.Sentence{ui.Strong(sentenceCase(n.people("You", " and "))), ui.Plain(verb), ui.Name(question)}
	if due == nil {
		return append(out, ui.Plain("”, for "+ui.Duration(c.now.Sub(n.Since))+"."))
	}
	return append(out, ui.Plain("”. Due "+c.brief(*due)+", then "+n.silence()+"."))
}

// about begins a reason with the step, where there is one.
func (n news) about(words string) ui.Sentence {
	if n.StepName == "" {
		return ui.Sentence{ui.Name(words)}
	}
	return ui.Sentence{ui.Name(sentenceCase(n.step())), ui.Plain(": "), ui.Name(words)}
}

// word is the standing in the one word that begins the title of a tab.
func (n news) word() string {
	return map[engine.StandingState]string{
		engine.StandingFailed: "Failed", engine.StandingCapped: "Stopped by the cap", engine.StandingPerson: "Waiting",
		engine.StandingRetrying: "Retrying", engine.StandingWaiting: "Waiting", engine.StandingRunning: "Running",
		engine.StandingQueued: "Queued", engine.StandingPaused: "Paused", engine.StandingCompleted: "Done",
		engine.StandingCancelled: "Cancelled",
	}[n.Standing]
}

// badge is the standing as a badge.
func (n news) badge() ui.Badge {
	badge := ui.Badge{Status: statusOf(n.Standing)}
	if n.Run.State == engine.RunPausing {
		badge.Words = "Pausing"
	}
	if n.Part && n.Standing == engine.StandingQueued {
		badge.Words = "Not begun"
	}
	if n.Standing == engine.StandingRetrying {
		badge.Words = fmt.Sprintf("Retrying, %d of %d", n.Attempt, n.Tries)
	}
	return badge
}

// clock words times for one reader at one moment.
type clock struct {
	now  time.Time
	zone *time.Location
}

func (c clock) when(t time.Time) string  { return inSentence(ui.When(t, c.now, c.zone)) }
func (c clock) brief(t time.Time) string { return inSentence(ui.WhenBrief(t, c.now, c.zone)) }

// lasting goes on with for how long.
func (c clock) lasting(since time.Time) string {
	return ", for " + ui.Duration(max(c.now.Sub(since), time.Second))
}

// since goes on with since when.
func (c clock) since(t time.Time) string { return " since " + c.when(t) }

// sentenceCase makes the first letter a capital.
func sentenceCase(words string) string {
	first, size := utf8.DecodeRuneInString(words)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + words[size:]
}
