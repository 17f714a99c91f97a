package main

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/llm"
	"tollgate/app/pipeline"
	"tollgate/web"
)

// The local mode's models that break on order. They are a server in this very process,
// reached over the loopback interface by the same adapters as a real one.
const (
	fakePrefix = "fake"
	fakeFirst  = "first"  // breaks on order; speaks OpenAI's format
	fakeSecond = "second" // always answers; speaks Anthropic's format
)

// fakeEntry is the registry's entry of those models at an address.
func fakeEntry(address string) (llm.Entry, error) {
	client, err := llm.NewHTTP(address)
	if err != nil {
		return llm.Entry{}, err
	}
	first, err := llm.NewOpenAI(llm.Config{BaseURL: "http://" + address + "/v1", HTTP: client, Name: "The first model"})
	if err != nil {
		return llm.Entry{}, err
	}
	second, err := llm.NewAnthropic(llm.Config{BaseURL: "http://" + address, HTTP: client, Name: "The second model"})
	if err != nil {
		return llm.Entry{}, err
	}
	return llm.Entry{Prefix: fakePrefix, Provider: breakable{fakeFirst: first, fakeSecond: second}, Models: []llm.Model{
		{ID: fakePrefix + "/" + fakeFirst, Name: "Model that breaks on order (no key, reads nothing)", Practice: true},
		{ID: fakePrefix + "/" + fakeSecond, Name: "Model that stands in (no key, reads nothing)", Practice: true},
	}}, nil
}

// breakable are the providers of those models. Their answers say that they are made up.
type breakable map[string]llm.Provider

// Call implements llm.Provider.
func (b breakable) Call(ctx context.Context, req llm.Request) (llm.Answer, error) {
	answer, err := b[req.Model].Call(ctx, req)
	if err == nil {
		answer.Practice, answer.Note = true, llm.PracticeNote
	}
	return answer, err
}

// serveFakes serves those models until the process ends.
func serveFakes(log *slog.Logger) (*listener, string, error) {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("serve the models that break on order: %w", err)
	}
	server := fakellm.New(1)
	server.Keep(0)
	server.Latency(400*time.Millisecond, 900*time.Millisecond)
	server.Choose(chooseTrouble)
	return listen(socket, server, log), socket.Addr().String(), nil
}

// troubles are what can be ordered. The pipeline's start form offers them by name, and its
// prompts carry the name to the server.
var troubles = []trouble{
	{web.Trouble{Name: "429", Title: "Too many calls", Does: "The model says that too many calls came, and asks to come again in five seconds.",
		Watch: "The step waits for as long as it was told and asks again. The refused call costs nothing."},
		func(ask fakellm.Seen, times int) (fakellm.Turn, bool) {
			return fakellm.Turn{Status: 429, Message: "Too many requests.", Header: map[string]string{"Retry-After": "5"}}, times == 1
		}},
	{web.Trouble{Name: "529", Title: "Overloaded", Does: "The first model says that it is overloaded, each time it is asked.",
		Watch: "After a few tries the second model of the step is asked. The step names both, and what each cost."},
		func(ask fakellm.Seen, _ int) (fakellm.Turn, bool) {
			return fakellm.Turn{Status: 529, Message: "Overloaded."}, first(ask)
		}},
	{web.Trouble{Name: "refusal", Title: "Refusal", Does: "The first model declines to answer.",
		Watch: "It is not asked again. The second model answers. What the first one wrote is paid for all the same."},
		func(ask fakellm.Seen, _ int) (fakellm.Turn, bool) {
			return fakellm.Turn{Refusal: "I would rather not summarise this letter."}, first(ask)
		}},
	{web.Trouble{Name: "cut", Title: "Cut stream", Does: "The line breaks in the middle of the answer.",
		Watch: "The half answer is thrown away and the model is asked again, under the same key. What had come is charged, marked as an estimate."},
		func(ask fakellm.Seen, times int) (fakellm.Turn, bool) {
			return fakellm.Turn{Text: letterSummary, Pace: 150 * time.Millisecond, CutAfter: 12}, times == 1 && ask.Schema == nil
		}},
	{web.Trouble{Name: "bad-json", Title: "Broken answer", Does: "The second step asks for fields, and the model answers with something that is no JSON.",
		Watch: "The model is asked again and told what was wrong. Both answers are paid for; the run goes on with the good one."},
		func(ask fakellm.Seen, _ int) (fakellm.Turn, bool) {
			return fakellm.Turn{Text: `The letter is a complaint, {"kind": compl`}, ask.Schema != nil && firstQuestion(ask)
		}},
	{web.Trouble{Name: "slow", Title: "Slow answer", Does: "The model writes one word after the other, for about half a minute.",
		Watch: "The text appears in the panel of the step while it is written, also after you reload the page."},
		slowly},
	{web.Trouble{Name: "kill", Title: "Kill the worker", Does: "The model is slow. While it writes, you kill the worker that waits for it: it is cut off from the database and dropped without a goodbye.",
		Watch: "For ten seconds nothing happens: that is how long a worker may be silent. Then another takes the step over and makes the call again under the same key. The try that was lost is named, and booked as what it may have cost.",
		Kills: true},
		slowly},
	{web.Trouble{Name: "clock", Title: "Skip the clock", Does: "The run waits for three days, as runs do that wait for somebody. You move its clock forward.",
		Watch: "The run holds no worker while it waits. A moment after the clock was moved it goes on where it was.",
		Skips: true},
		func(fakellm.Seen, int) (fakellm.Turn, bool) { return fakellm.Turn{}, false }},
}

// trouble is one thing that can be ordered, and what the server makes of it.
type trouble struct {
	web.Trouble
	turn func(ask fakellm.Seen, times int) (fakellm.Turn, bool)
}

// first tells whether the model that breaks was asked.
func first(ask fakellm.Seen) bool { return ask.Model == fakeFirst }

// firstQuestion tells whether the step asks for the first time: a question that is asked
// anew, or of another model, has a longer key.
func firstQuestion(ask fakellm.Seen) bool {
	return len(ask.Key) == len("00000000-0000-0000-0000-000000000000")
}

func slowly(ask fakellm.Seen, times int) (fakellm.Turn, bool) {
	return fakellm.Turn{Text: letterSummary, Pace: 550 * time.Millisecond}, ask.Schema == nil && times == 1
}

// letterSummary is what the models write where they write at all.
const letterSummary = "This is a practice answer, which no AI wrote. The customer says that her train was two hours late, that nobody told her why, " +
	"and that she would like her money back. She asks for an answer by Friday."

// chooseTrouble finds what was ordered in what is asked.
func chooseTrouble(ask fakellm.Seen, times int) (fakellm.Turn, bool) {
	ordered, _, _ := strings.Cut(ask.User, "\n")
	for _, t := range troubles {
		if ordered == "Order: "+t.Name {
			if turn, ok := t.turn(ask, times); ok {
				return turn, true
			}
		}
	}
	if ask.Schema == nil {
		return fakellm.Turn{Text: letterSummary, Pace: 20 * time.Millisecond}, true
	}
	return fakellm.Turn{}, false
}

// breakTemplate is the template that the pipeline which is broken is noted to come from.
const breakTemplate = web.BreakTemplate

// breaking is what the pages may break.
func breaking(work *localWorker) *web.Breaking {
	b := &web.Breaking{KillWorker: work.Kill}
	for _, t := range troubles {
		b.Troubles = append(b.Troubles, t.Trouble)
	}
	return b
}

//go:embed breakit.json
var breakJSON []byte

// breakDocument is the pipeline that is broken.
func breakDocument() (pipeline.Document, error) { return pipeline.Parse(breakJSON) }
