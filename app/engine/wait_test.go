package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
)

const waitsUntil = `{"semantics": 2, "name": "Until", "input": [{"name": "day", "type": "text"}], "steps": [
	{"id": "wait", "name": "Wait for the day", "kind": "wait", "with": {"until": "input.day"}},
	{"id": "after", "name": "Go on", "kind": "set", "with": {"values": [{"name": "day", "formula": "input.day"}]}}],
	"result": [{"name": "day", "formula": "steps.after.day"}]}`

// A date from data is a day in the workspace's zone, also where its clocks change; what
// has passed is over at once, and what is no date, or too far away, fails in words.
func TestWaitUntilADateFromData(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.exec(`UPDATE tenants SET zone = 'Europe/Berlin'`)
	h.work()
	id := h.publish(waitsUntil)
	year := time.Now().UTC().Year() + 1
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	spring := changeIn(zone, year, time.March)
	autumn := changeIn(zone, year, time.October)
	for text, want := range map[string]time.Time{
		fmt.Sprintf("%d-07-01", year):                      time.Date(year, 7, 1, 0, 0, 0, 0, zone),
		fmt.Sprintf("%d-07-01T09:30", year):                time.Date(year, 7, 1, 9, 30, 0, 0, zone),
		fmt.Sprintf("%d-07-01T09:30:00Z", year):            time.Date(year, 7, 1, 9, 30, 0, 0, time.UTC),
		spring.In(zone).Format("2006-01-02") + "T02:30":    spring,                        // skipped
		autumn.In(zone).Format("2006-01-02") + "T02:30":    autumn.Add(-30 * time.Minute), // twice
		fmt.Sprintf("%d-06-30", time.Now().UTC().Year()+2): time.Date(year+1, 6, 30, 0, 0, 0, 0, zone),
	} {
		p, step := h.awaitWait(h.start(id, fmt.Sprintf(`{"day": %q}`, text)), engine.WaitTime)
		require.Equal(t, want.UTC(), p.Waits[step].Due.UTC(), text)
	}
	require.JSONEq(t, `{"day": "2020-01-01"}`, h.value(h.awaitEnd(h.start(id, `{"day": "2020-01-01"}`)).Run.Result))
	for text, says := range map[string]string{
		fmt.Sprintf("%d-01-01", year+3): "A run can stay open for 3 years", "2026-02-30": "not a date that exists", "soon": "not a date that exists", "": "is empty",
	} {
		p := h.awaitEnd(h.start(id, fmt.Sprintf(`{"day": %q}`, text)))
		require.Equal(t, engine.RunFailed, p.Run.State)
		require.Contains(t, p.Run.Failure.Message, says)
	}
}

// changeIn is the moment in a month at which the clocks of a zone change.
func changeIn(zone *time.Location, year int, month time.Month) time.Time {
	_, end := time.Date(year, month, 1, 12, 0, 0, 0, zone).ZoneBounds()
	return end
}
