package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tollgate/tenants"
)

// Hand is somebody who does something to a run, and the one-time key of the form that she
// sent: sent again, it does nothing.
type Hand struct {
	By  tenants.Actor
	Key string // empty: nothing tells it from an earlier one
}

// ErrMoved tells that a run is not as it was when somebody was told what would happen to
// it. Nothing was changed.
var ErrMoved = errors.New("the run has changed since")

// Mark is where a run and a step of it stand. A page that asks before it does something
// keeps it, so that what is done is what was asked about.
type Mark string

func markOf(run Run, step StepRun) Mark {
	return Mark(fmt.Sprintf("%s %s %d %d", run.State, step.State, run.Reopened, step.Attempt))
}

// Run is the run's state; empty where the mark is none.
func (m Mark) Run() RunState { return RunState(m.word(0)) }

// Step is the step's state; empty where the mark is about no step.
func (m Mark) Step() StepState { return StepState(m.word(1)) }

func (m Mark) word(at int) string {
	words := strings.Split(string(m), " ")
	if len(words) != markWords {
		return ""
	}
	return words[at]
}

const markWords = 4

// doneBefore tells whether the hand's form did its work on the run before. Of two that
// come at once the second waits for the first.
func (h Hand) doneBefore(ctx context.Context, tx tenants.Tx, run RunID) (bool, error) {
	if h.Key == "" {
		return false, nil
	}
	batch := &tenants.Batch{}
	queueKeyLocks(batch, tx.Tenant, h.Key)
	if err := tx.Send(ctx, batch); err != nil {
		return false, fmt.Errorf("wait for a form that was sent twice: %w", err)
	}
	entries, err := tenants.AuditOf(ctx, tx, runTarget(run), tenants.AuditID{})
	for _, entry := range entries {
		if entry.Detail["key"] == h.Key {
			return true, err
		}
	}
	return false, err
}

// note writes down who did what to the run.
func (h Hand) note(ctx context.Context, tx tenants.Tx, run RunID, action string, detail map[string]any) error {
	if detail == nil {
		detail = map[string]any{}
	}
	if h.Key != "" {
		detail["key"] = h.Key
	}
	return tenants.Audit(ctx, tx, tenants.Entry{Actor: h.By, Action: action, Target: runTarget(run), Detail: detail})
}

func runTarget(run RunID) tenants.Target { return tenants.Target{Kind: "run", ID: run} }
