package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func boundedLoop(maxCost int64, rounds int, stepCost int64) string {
	return fmt.Sprintf(`{"id":"loop","name":"Until good","kind":"repeat","with":{"until":"true","max_rounds":%d,"max_cost":%d,"max_time":"1h","at_limit":"fail","steps":[
		{"id":"ask","name":"Ask","kind":"ai","with":{"models":["practice/standard","acme/unknown"],"instructions":"Do.","prompt":"x","max_cost":%d}}]}}`, rounds, maxCost, stepCost)
}

func TestCheckMoneyFlagsLoopsBeyondTheCapAndModelsWithoutAPrice(t *testing.T) {
	t.Parallel()
	ten := int64(10_000_000)
	known := Money{Priced: func(model string) bool { return model == "practice/standard" }, Words: func(m int64) string { return fmt.Sprintf("$%d", m/1_000_000) }}
	capped := known
	capped.RunCap = &ten
	check := func(doc string, m Money) string {
		d, err := Parse([]byte(doc))
		require.NoError(t, err)
		return strings.Join(lines(CheckMoney(d, m)), "\n")
	}
	for name, c := range map[string]struct {
		doc   string
		money Money
		loop  bool
	}{
		"no cap":                       {docWith(boundedLoop(40_000_000, 5, 0)), known, false},
		"loop above the cap":           {docWith(boundedLoop(40_000_000, 5, 0)), capped, true},
		"loop within the cap":          {docWith(boundedLoop(9_000_000, 5, 0)), capped, false},
		"rounds bounded below the cap": {docWith(boundedLoop(40_000_000, 5, 2_000_000)), capped, false},
		"rounds bounded above the cap": {docWith(boundedLoop(40_000_000, 6, 2_000_000)), capped, true},
		"the document's own cap":       {strings.Replace(docWith(boundedLoop(40_000_000, 5, 0)), `"name":"Test"`, `"name":"Test","run_cap":1000000`, 1), known, true},
	} {
		got := check(c.doc, c.money)
		require.Equal(t, c.loop, strings.Contains(got, "this loop could cost up to"), "%s: %s", name, got)
		require.Contains(t, got, "acme/unknown", name)
	}
	require.Contains(t, check(docWith(boundedLoop(40_000_000, 5, 0)), capped), "this loop could cost up to $40, and the cap of a run is $10")
	first := check(docWith(strings.Replace(aiStep, "practice/standard", "acme/unknown", 1)), known)
	require.Contains(t, first, "blocks ask with.models[0]")
	require.Contains(t, first, "is not known, so it is never called")
	require.Empty(t, check(docWith(strings.Replace(aiStep, `"kind":"ai"`, `"kind":"ai","off":true`, 1), setStep), known), "what is turned off is not published")
}
