package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
)

// What follows a try depends on its class and on what the chain has left, and on nothing
// else. Each row is the whole rule for a class: with all that could help, and less and less.
func TestWhatFollowsATry(t *testing.T) {
	t.Parallel()
	all := chainFacts{tryAgain: true, more: true, anew: true, longer: true, refusal: pipeline.RefusalFail, missing: pipeline.MissingFail}
	spent := all
	spent.tryAgain, spent.anew, spent.longer = false, false, false
	last := spent
	last.more = false
	for class, want := range map[string][3]following{
		"rate_limited":     {backOff, nextModel, giveUp},
		"overloaded":       {backOff, nextModel, giveUp},
		"server":           {backOff, nextModel, giveUp},
		"timeout":          {backOff, nextModel, giveUp},
		"connection":       {backOff, nextModel, giveUp},
		"context_too_long": {nextModel, nextModel, giveUp},
		"invalid_request":  {nextModel, nextModel, giveUp},
		"auth":             {nextModel, nextModel, giveUp},
		"spend_limit":      {nextModel, nextModel, giveUp},
		ClassNoPrice:       {nextModel, nextModel, giveUp},
		ClassTooDear:       {nextModel, nextModel, giveUp},
		"malformed":        {askAnew, nextModel, giveUp},
		"empty":            {askAnew, nextModel, giveUp},
		"truncated":        {askLonger, nextModel, giveUp},
		"refused":          {giveUp, giveUp, giveUp},
		ClassInternal:      {giveUp, giveUp, giveUp},
		"never heard of":   {giveUp, giveUp, giveUp},
	} {
		for i, facts := range []chainFacts{all, spent, last} {
			require.Equal(t, want[i], follows(class, facts), "%s, %d", class, i)
		}
	}
	for _, row := range []struct {
		class   string
		refusal pipeline.RefusalAction
		missing pipeline.MissingAction
		more    bool
		want    following
	}{
		{"refused", pipeline.RefusalNext, "", true, nextModel},
		{"refused", pipeline.RefusalNext, "", false, giveUp},
		{"refused", pipeline.RefusalAsk, "", true, askPeople},
		{"malformed", "", pipeline.MissingAsk, true, nextModel},
		{"malformed", "", pipeline.MissingAsk, false, askPeople},
		{"empty", "", pipeline.MissingAsk, false, askPeople},
		{"malformed", pipeline.RefusalAsk, pipeline.MissingEmpty, false, giveUp},
		{"overloaded", pipeline.RefusalAsk, pipeline.MissingAsk, false, giveUp},
	} {
		require.Equal(t, row.want, follows(row.class, chainFacts{more: row.more, refusal: row.refusal, missing: row.missing}), "%+v", row)
	}
}

// Keys of calls tell models and re-asks apart, and hold ids every call.
func TestKeysOfAChain(t *testing.T) {
	t.Parallel()
	row := StepRun{ID: StepRunID{7}}
	keys := map[string]bool{row.key(): true}
	require.Equal(t, row.ID.String(), row.key(), "as ever, where there is one model and one question")
	holds := map[any]bool{}
	for place := range 3 {
		for reask := range 3 {
			row.Chain = Chain{Place: place, Reask: reask}
			keys[row.key()] = true
		}
	}
	require.Len(t, keys, 9)
	for attempt := 1; attempt <= 3; attempt++ {
		for putOff := range 3 {
			holds[holdID(row.ID, attempt, putOff)] = true
		}
	}
	require.Len(t, holds, 9)
}
