package web

import (
	"context"
	"errors"

	"github.com/a-h/templ"

	"tollgate/app/engine"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// The entries of the audit log about pausing.
const (
	runPaused  = "run.paused"
	runResumed = "run.resumed"
)

// pauseButton pauses the run, or resumes it; nil where neither can be done.
func (r *runView) pauseButton() templ.Component {
	if !r.mayChange() {
		return nil
	}
	button := ui.PostButton{Hidden: []ui.Hidden{{Name: "key", Value: r.Key}}}
	switch r.View.Run.State {
	case engine.RunRunning:
		button.Action = r.path("pause")
		button.Button = ui.Button{Text: "Pause", Icon: ui.IconPaused, TestID: "pause-run"}
	case engine.RunPausing, engine.RunPaused:
		button.Action = r.path("resume")
		button.Button = ui.Button{Text: "Resume", Icon: ui.IconPlay, TestID: "resume-run"}
	default:
		return nil
	}
	return button
}

// pauseRun lets the steps under way end and begins no more.
func (s *Server) pauseRun(v *visit) error {
	return v.changeRun(runPaused, engine.ErrNotRunning, s.Engine.Pause)
}

// resumeRun lets a paused run go on.
func (s *Server) resumeRun(v *visit) error {
	return v.changeRun(runResumed, engine.ErrNotPaused, s.Engine.Resume)
}

// changeRun does something to a run and notes who did it. The same form sent again does
// nothing, also when the run was changed back meanwhile; somebody else's press before
// this one has brought about what was wanted.
func (v *visit) changeRun(action string, before error, change func(context.Context, tenants.Tx, engine.RunID) error) error {
	id, err := idParam[engine.Run](v, "run")
	if err != nil {
		return err
	}
	key := v.FormValue("key")
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		target := tenants.Target{Kind: "run", ID: id}
		entries, err := tenants.AuditOf(ctx, tx, target, tenants.AuditID{})
		if err != nil || usedKey(entries, key) {
			return err
		}
		if err := change(ctx, tx, id); err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenants.Entry{
			Actor: tenants.ByMember(v.me), Action: action, Target: target, Detail: map[string]any{"key": key},
		})
	})
	if err != nil && !errors.Is(err, before) {
		return err
	}
	return v.redirect(v.path("runs", id.String()))
}

// usedKey tells whether a form with this key was done before.
func usedKey(entries []tenants.Entry, key string) bool {
	for _, entry := range entries {
		if key != "" && entry.Detail["key"] == key {
			return true
		}
	}
	return false
}

// pauseWords tell it as a line of the run's story.
func pauseWords(entry tenants.Entry) ui.Sentence {
	verb := " paused the run"
	if entry.Action == runResumed {
		verb = " resumed the run"
	}
	return ui.Sentence{ui.Name(entry.Actor.Name), ui.Plain(verb)}
}

// pausedSentence is the one at the head of a run that somebody has paused; nil for any
// other.
func (r *runView) pausedSentence() ui.Sentence {
	if r.View.Run.State != engine.RunPaused || len(r.Pauses) == 0 || r.Pauses[0].Action != runPaused {
		return nil
	}
	c := clock{r.Now, r.v.zone()}
	return ui.Sentence{
		ui.Strong("Paused by " + r.Pauses[0].Actor.Name), ui.Plain(c.since(r.Pauses[0].At) + ". Nothing begins until somebody resumes it; what it waits for may come meanwhile."),
	}
}
