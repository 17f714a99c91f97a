package engine

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// Filter chooses runs. Zero fields do not choose.
type Filter struct {
	Pipeline pipeline.ID `json:"pipeline,omitzero"`
	Version  int         `json:"version,omitempty"` // of the pipeline
	Group    Group       `json:"group,omitempty"`
	Class    string      `json:"class,omitempty"` // of the failure
	Cause    string      `json:"cause,omitempty"` // the failure's message, word for word
	From     time.Time   `json:"from,omitzero"`   // begun at or after
	To       time.Time   `json:"to,omitzero"`     // begun before
	Find     string      `json:"find,omitempty"`  // what a field that runs are found by begins with
	Field    string      `json:"field,omitempty"` // the field that Find is looked for in; empty: any
	Exact    bool        `json:"exact,omitempty"` // Find is the whole value
	Under    RunID       `json:"under,omitzero"`  // in the tree of runs below this one
	Top      bool        `json:"top,omitempty"`   // that no step of another run began
}

// Group is a choice of runs by how they stand.
type Group string

// The groups that lists offer.
const (
	GroupOpen      Group = "open"
	GroupPerson    Group = "person" // waits for a person
	GroupCapped    Group = "capped" // stopped by the cap
	GroupPaused    Group = "paused" // or about to be
	GroupQueued    Group = "queued" // its pipeline takes no more at once
	GroupFailed    Group = "failed"
	GroupCompleted Group = "completed"
	GroupCancelled Group = "cancelled"
)

// groupConditions are fixed texts: nothing from outside gets into the query.
var groupConditions = map[Group]string{
	"":             "true", // all
	GroupOpen:      "r.ended_at IS NULL",
	GroupPerson:    "r.ended_at IS NULL AND r.id IN (SELECT w.run_id FROM waits w WHERE w.tenant_id = $1 AND w.state = 'open' AND w.kind = 'review')",
	GroupCapped:    "r.ended_at IS NULL AND r.id IN (SELECT w.run_id FROM waits w WHERE w.tenant_id = $1 AND w.state = 'open' AND w.kind = 'cap')",
	GroupPaused:    "r.state IN ('pausing', 'paused')",
	GroupQueued:    "r.state = 'queued'",
	GroupFailed:    "r.state = 'failed'",
	GroupCompleted: "r.state = 'completed'",
	GroupCancelled: "r.state = 'cancelled'",
}

// countedOpen says the same as the group's condition, for counting by an index alone.
const countedOpen = "r.state IN ('queued', 'running', 'pausing', 'paused', 'cancelling')"

// Known tells whether the group is one that lists offer.
func (g Group) Known() bool { _, ok := groupConditions[g]; return ok }

// choice is a filter as the condition of a query, with its values. $1 is the tenant.
type choice struct {
	texts []string
	args  []any
}

// and adds a condition, in which ? stands for the value.
func (c *choice) and(text string, value any) {
	c.args = append(c.args, value)
	c.texts = append(c.texts, strings.ReplaceAll(text, "?", fmt.Sprintf("$%d", len(c.args))))
}

// bind adds a value and gives what stands for it.
func (c *choice) bind(value any) string {
	c.args = append(c.args, value)
	return fmt.Sprintf("$%d", len(c.args))
}

func (c *choice) where() string { return strings.Join(c.texts, " AND ") }

// known tells whether there is such a filter.
func (f Filter) known() error {
	if !f.Group.Known() {
		return fmt.Errorf("unknown group %q of runs", f.Group)
	}
	return nil
}

// looks tells whether runs are chosen by a value that they have.
func (f Filter) looks() bool { return pipeline.SearchText(f.Find) != "" }

// choose is the filter as a condition on runs r, but for the value that they have.
func (f Filter) choose(tx tenants.Tx) (choice, error) {
	c := choice{args: []any{tx.Tenant}}
	f.chooseInto(&c)
	return c, f.known()
}

// chooseInto adds what choose gives to a choice that has the tenant.
func (f Filter) chooseInto(c *choice) {
	c.texts = append(c.texts, "r.tenant_id = $1", "r.created_at IS NOT NULL")
	if f.Group != "" {
		c.texts = append(c.texts, groupConditions[f.Group])
	}
	if !f.Pipeline.IsZero() {
		c.and("r.pipeline_id = ?", f.Pipeline)
	}
	if f.Version > 0 {
		c.and("r.version = ?", f.Version)
	}
	if f.Class != "" {
		c.and("r.failure ->> 'class' = ?", f.Class)
	}
	if f.Cause != "" {
		c.and("r.failure ->> 'message' = ?", f.Cause)
	}
	if !f.From.IsZero() {
		c.and("r.created_at >= ?", f.From)
		c.and("r.id >= ?", idsFrom(f.From.Add(-idSlack)))
	}
	if !f.To.IsZero() {
		c.and("r.created_at < ?", f.To)
	}
	if !f.Under.IsZero() {
		c.and("r.root_run = (SELECT coalesce(u.root_run, u.id) FROM runs u WHERE u.tenant_id = $1 AND u.id = ?)", f.Under)
	}
	if f.Top {
		c.texts = append(c.texts, "r.parent_run IS NULL")
	}
}

// idSlack is how much earlier than the run itself its id may have been made, by another clock.
const idSlack = time.Hour

// idsFrom is the least id that is made at a time or later: ids begin with the milliseconds.
// It bounds how far back a list has to look.
func idsFrom(t time.Time) RunID {
	var id RunID
	binary.BigEndian.PutUint64(id[:8], uint64(max(t.UnixMilli(), 1))<<16)
	return id
}

// find adds the condition on rows s of run_search that have the value.
func (f Filter) find(c *choice) {
	text := pipeline.SearchText(f.Find)
	c.texts = append(c.texts, "s.tenant_id = $1")
	if f.Exact {
		c.and("s.value = ?", text)
	} else {
		c.and("s.value >= ?", text)
		c.and("s.value < ?", text+string(utf8.MaxRune)) // behind all that begins so
	}
	if f.Field != "" {
		c.and("s.field = ?", f.Field)
	}
}

// has is the condition on runs r that have the value; true where none is looked for.
func (f Filter) has(c *choice) string {
	if !f.looks() {
		return "true"
	}
	before := c.texts
	c.texts = []string{"s.run_id = r.id"}
	f.find(c)
	condition := "EXISTS (SELECT FROM run_search s WHERE " + c.where() + ")"
	c.texts = before
	return condition
}

// chooseAll is the whole filter as one condition on runs r, for what goes over all of them.
func (f Filter) chooseAll(tx tenants.Tx) (choice, error) {
	c, err := f.choose(tx)
	c.texts = append(c.texts, f.has(&c))
	return c, err
}
