package engine

import (
	"fmt"
	"time"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
)

// waitTerms are what a "Wait until" step says: a span, or the value of its formula.
type waitTerms struct {
	span  time.Duration
	until any            // a date, or a date with time, as text; read only where span is 0
	zone  *time.Location // of the workspace
}

// ends works out when a wait that begins now ends. A time that has passed is over at
// once; one that the run cannot live to see is refused.
func (w waitTerms) ends(run Run, now time.Time) (time.Time, *Failure) {
	end := now.Add(w.span)
	if w.span == 0 {
		text, isText := w.until.(string)
		var ok bool
		if end, ok = momentIn(text, w.zone); !isText || !ok {
			return end, notADate(w.until)
		}
	}
	return end.UTC(), tooFar(run, end, w.zone)
}

// tooFar refuses a wait that ends after the run must have ended.
func tooFar(run Run, end time.Time, zone *time.Location) *Failure {
	last := run.CreatedAt.Add(pipeline.MaxRunDays * 24 * time.Hour)
	if !end.After(last) {
		return nil
	}
	const day = "2 January 2006"
	return &Failure{Class: ClassTooFar, Message: fmt.Sprintf(
		"The step would wait until %s. A run can stay open for 3 years, this one until %s. Choose an earlier time, or start another run then.",
		end.In(zone).Format(day), last.In(zone).Format(day))}
}

func notADate(value any) *Failure {
	failure := &Failure{Class: ClassFormula, Message: "The time to wait for is empty. Choose a value that always has a date."}
	if value == nil || value == "" {
		return failure
	}
	said, err := expr.EncodeJSON(value)
	if err != nil {
		said = []byte("a value")
	}
	failure.Message = fmt.Sprintf("The time to wait for is %s, which is not a date that exists. It must be written like 2026-11-30 or 2026-11-30T09:00:00+01:00.",
		expr.Preview(said, 100))
	return failure
}

// localLayouts are times without an offset; they mean the clock in the workspace.
var localLayouts = []string{time.DateOnly, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04"}

// momentIn reads a date, which means its beginning in the zone, a local time in the
// zone, or a time with its own offset.
func momentIn(text string, zone *time.Location) (time.Time, bool) {
	if exact, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return exact, true
	}
	for _, layout := range localLayouts {
		if wall, err := time.Parse(layout, text); err == nil {
			return resolve(wall, zone), true
		}
	}
	return time.Time{}, false
}

// resolve finds the moment at which the clocks of a zone show what wall shows in UTC.
// Where they show it twice, because they go back, it is the first time. Where they skip
// it, it is the first moment after the gap.
func resolve(wall time.Time, zone *time.Location) time.Time {
	const around = 26 * time.Hour // further than any offset
	_, before := wall.Add(-around).In(zone).Zone()
	_, after := wall.Add(around).In(zone).Zone()
	early, late := wall.Add(-time.Duration(before)*time.Second), wall.Add(-time.Duration(after)*time.Second)
	if late.Before(early) {
		early, late = late, early
	}
	for _, moment := range []time.Time{early, late} {
		if sameClock(moment.In(zone), wall) {
			return moment
		}
	}
	change, _ := late.In(zone).ZoneBounds()
	return change
}

func sameClock(a, b time.Time) bool { return a.Format(time.DateTime) == b.Format(time.DateTime) }
