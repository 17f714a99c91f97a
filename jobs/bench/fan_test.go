package bench

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/app/pipeline"
)

// lanes is how many items are worked on side by side.
const lanes = 50

// list is a pipeline that calls outside once for each item of a list of numbers.
func list(items int) pipeline.Document {
	part := min(items, 500) // a formula has a limit
	numbers := "[" + strings.TrimSuffix(strings.Repeat("1, ", part), ", ") + "]"
	all := strings.TrimSuffix(strings.Repeat("steps.numbers.part + ", items/part), " + ")
	return pipeline.Document{
		Semantics: pipeline.Semantics, Name: fmt.Sprintf("%d items", items),
		Steps: []pipeline.Step{
			{ID: "numbers", Name: "Numbers", Kind: pipeline.KindSet, With: &pipeline.Set{Values: []pipeline.Value{{Name: "part", Formula: numbers}}}},
			{ID: "each", Name: "Each", Kind: pipeline.KindEach, With: &pipeline.Each{
				Items: all, AtOnce: lanes,
				Steps: []pipeline.Step{{ID: "send", Name: "Send", Kind: pipeline.KindEmail, With: &pipeline.Email{
					To: []string{"someone@example.com"}, Subject: "Item {{ index }}", Body: "{{ item }} of {{ run.id }}",
				}}},
			}},
		},
	}
}

// fanned are the figures of W3: from the start of a run until its items are joined.
func fanned(t *testing.T, ours *house, s size) []*row {
	t.Helper()
	few, many := ours.publish(t, list(s.fan)), ours.publish(t, list(s.wide))
	var peak float64
	return []*row{
		{name: fmt.Sprintf("W3 %d items, joined", s.fan), unit: "s", bar: "≤ 0.4",
			take: func() float64 { return ours.run(t, few, 1, s.fan).whole.Seconds() }},
		{name: fmt.Sprintf("W3 %d items, joined", s.wide), unit: "s", bar: "≤ 8", take: func() float64 {
			var took took
			peak = highest(func() { took = ours.run(t, many, 1, s.wide) })
			return took.whole.Seconds()
		}},
		{name: "W3 memory at its highest, above the beginning", unit: "MB", mayBeNone: true, take: func() float64 { return peak }},
	}
}

// highest is by how many MB this process's memory was above its beginning at most.
func highest(work func()) float64 {
	before, most := memory(), 0.0
	var done atomic.Bool
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for !done.Load() {
			most = max(most, memory()-before)
			time.Sleep(20 * time.Millisecond)
		}
	}()
	work()
	done.Store(true)
	<-watched
	return most
}
