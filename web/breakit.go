package web

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/trigger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// Breaking is what local mode lets people break on purpose, so that they can see what
// becomes of it. All of it happens to the real machinery.
type Breaking struct {
	Troubles []Trouble
	// KillWorker drops the worker of this computer without a goodbye, and begins another.
	KillWorker func(context.Context) error
}

// Trouble is one thing to break: a run of the pipeline from BreakTemplate with Name as its
// order.
type Trouble struct {
	Name  string // as the run is given it: "429"
	Title string // for people
	Does  string // what will happen, in a sentence
	Watch string // what to look at
	Kills bool   // a worker can be killed meanwhile
	Skips bool   // the clock can be skipped meanwhile
}

// BreakTemplate is noted as the template of the pipeline that is broken.
const BreakTemplate = "break-it"

// breakProvider provides the models that break on order: "fake/first" and "fake/second".
const breakProvider = "fake"

// Names of what travels with the page's forms, and the entries of the audit log.
const (
	orderName     = "order"
	workerKilled  = "run.worker_killed"
	clockSkipped  = "run.clock_skipped"
	breakPath     = workspacePath + "/break"
	breakPageName = "Break it"
)

// breaks is access for who may start runs here, from this computer only.
var breaks = access{signedIn: true, action: tenants.StartRuns, local: true}

// breakView is the list of what can be broken.
type breakView struct {
	v     *visit
	There bool // the workspace has the pipeline
	Key   string
}

// breakWatch is what to look at while a run breaks.
type breakWatch struct {
	v       *visit
	Run     engine.Run
	Trouble Trouble
	Key     string
}

// breakPage lists what can be broken.
func (s *Server) breakPage(v *visit) error {
	if s.Local.Break == nil {
		return errNotFound
	}
	view := breakView{v: v, Key: newFormKey()}
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		_, there, err := breakPipeline(ctx, tx)
		view.There = there
		return err
	})
	if err != nil {
		return err
	}
	frame := v.frame(breakPageName, inNone)
	frame.Narrow = true
	return v.page(http.StatusOK, frame, breakBody(view))
}

// breakPipeline finds the pipeline that is broken.
func breakPipeline(ctx context.Context, tx tenants.Tx) (pipeline.ID, bool, error) {
	all, err := pipeline.List(ctx, tx)
	at := slices.IndexFunc(all, func(p pipeline.Pipeline) bool { return p.Template == BreakTemplate && p.Live > 0 })
	if err != nil || at < 0 {
		return pipeline.ID{}, false, err
	}
	return all[at].ID, true, nil
}

// breakStart starts a run that will break. The same form sent again is the same start.
func (s *Server) breakStart(v *visit) error {
	trouble, known := s.trouble(v.FormValue(orderName))
	key := v.FormValue(formKeyName)
	if !known || !trigger.FitsAsKey(key) {
		return errNotFound
	}
	hand := trigger.ByHand{Input: []byte(`{"order":"` + trouble.Name + `"}`), By: v.me, FormKey: key}
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		id, there, err := breakPipeline(ctx, tx)
		if err == nil && !there {
			return errNotFound
		}
		hand.Pipeline = id
		return err
	})
	if err != nil {
		return err
	}
	run, err := hand.StartNow(v.ctx(), v.me.Tenant.ID, s.Engine)
	if err != nil {
		v.saved = false
		return err
	}
	return v.redirect(v.path("break", run.ID.String()))
}

func (s *Server) trouble(name string) (Trouble, bool) {
	if s.Local == nil || s.Local.Break == nil {
		return Trouble{}, false
	}
	at := slices.IndexFunc(s.Local.Break.Troubles, func(t Trouble) bool { return t.Name == name })
	if at < 0 {
		return Trouble{}, false
	}
	return s.Local.Break.Troubles[at], true
}

// breakRunPage says what to look at, and offers what can be done meanwhile.
func (s *Server) breakRunPage(v *visit) error {
	view := breakWatch{v: v, Key: newFormKey()}
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		view.Run, view.Trouble, err = s.broken(ctx, tx, v)
		return err
	})
	if err != nil {
		return err
	}
	frame := v.frame(view.Trouble.Title, inNone)
	frame.Narrow = true
	return v.page(http.StatusOK, frame, breakRunBody(view))
}

// broken reads a run that breaks on order, by its name: the pipeline names it so.
func (s *Server) broken(ctx context.Context, tx tenants.Tx, v *visit) (engine.Run, Trouble, error) {
	id, err := idParam[engine.Run](v, "run")
	if err != nil {
		return engine.Run{}, Trouble{}, err
	}
	run, err := engine.RunByID(ctx, tx, id)
	if err != nil {
		return run, Trouble{}, err
	}
	broken, there, err := breakPipeline(ctx, tx)
	if err != nil {
		return run, Trouble{}, err
	}
	_, order, _ := strings.Cut(run.Name, ": ")
	trouble, known := s.trouble(order)
	if !known || !there || run.PipelineID != broken {
		return run, Trouble{}, errNotFound
	}
	return run, trouble, nil
}

// breakKill kills the worker, once for each form.
func (s *Server) breakKill(v *visit) error {
	return s.breakOnce(v, workerKilled, func(t Trouble) bool { return t.Kills }, nil, s.killWorker)
}

// breakSkip moves the run's clock forward.
func (s *Server) breakSkip(v *visit) error {
	return s.breakOnce(v, clockSkipped, func(t Trouble) bool { return t.Skips }, engine.SkipClock, nil)
}

func (s *Server) killWorker(ctx context.Context) error { return s.Local.Break.KillWorker(ctx) }

// breakOnce does something to a run that breaks, where its trouble allows it: in its
// transaction or behind it. The same form sent again does nothing.
func (s *Server) breakOnce(v *visit, action string, may func(Trouble) bool,
	within func(context.Context, tenants.Tx, engine.RunID) (int, error), behind func(context.Context) error) error {
	key, again := v.FormValue(formKeyName), false
	var run engine.Run
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var trouble Trouble
		var err error
		if run, trouble, err = s.broken(ctx, tx, v); err != nil {
			return err
		}
		if !may(trouble) {
			return errNotFound
		}
		target := tenants.Target{Kind: "run", ID: run.ID}
		entries, err := tenants.AuditOf(ctx, tx, target, tenants.AuditID{})
		if again = usedKey(entries, key); err != nil || again {
			return err
		}
		if within != nil {
			if _, err := within(ctx, tx, run.ID); err != nil {
				return err
			}
		}
		return tenants.Audit(ctx, tx, tenants.Entry{
			Actor: tenants.ByMember(v.me), Action: action, Target: target, Detail: map[string]any{"key": key},
		})
	})
	if err != nil {
		return err
	}
	if behind != nil && !again {
		if err := behind(v.ctx()); err != nil {
			return err
		}
	}
	return v.redirect(v.path("break", run.ID.String()) + "?done=1")
}

func (p breakView) tasks() ui.Tasks {
	var tasks ui.Tasks
	for _, t := range p.v.s.Local.Break.Troubles {
		tasks = append(tasks, ui.Task{Icon: t.icon(), Title: t.Title, Text: ui.Words(t.Does), Action: ui.PostButton{
			Action: p.v.path("break"),
			Hidden: []ui.Hidden{{Name: orderName, Value: t.Name}, {Name: formKeyName, Value: p.Key + "-" + t.Name}},
			Button: ui.Button{Text: "Try it", About: t.Title, TestID: "break-" + t.Name},
		}})
	}
	return tasks
}

func (t Trouble) icon() ui.Icon {
	switch {
	case t.Kills:
		return ui.IconStop
	case t.Skips:
		return ui.IconClock
	}
	return ui.IconWarning
}

func (p breakWatch) crumbs() []ui.Link {
	return []ui.Link{{Text: breakPageName, Href: p.v.path("break")}, {Text: p.Trouble.Title}}
}

func (p breakWatch) runPath() string { return p.v.path("runs", p.Run.ID.String()) }

// actions are what can be done while the run goes on, and the way to it.
func (p breakWatch) actions() ui.Actions {
	open := ui.Button{Text: "Open the run", Kind: ui.Primary, Href: p.runPath(), Icon: ui.IconRight, TestID: "open-run"}
	if p.Run.State.Final() || p.did() != nil {
		return ui.Actions{open}
	}
	hidden := []ui.Hidden{{Name: formKeyName, Value: p.Key}}
	at := p.v.path("break", p.Run.ID.String())
	switch {
	case p.Trouble.Kills:
		return ui.Actions{ui.PostButton{Action: at + "/kill", Hidden: hidden,
			Button: ui.Button{Text: "Kill the worker", Kind: ui.Danger, Icon: ui.IconStop, TestID: "kill-worker"}}, open}
	case p.Trouble.Skips:
		return ui.Actions{ui.PostButton{Action: at + "/skip", Hidden: hidden,
			Button: ui.Button{Text: "Skip the clock", Icon: ui.IconClock, TestID: "skip-clock"}}, open}
	}
	return ui.Actions{open}
}

// did tells what the last press has done; nil where nothing was pressed.
func (p breakWatch) did() ui.Sentence {
	switch {
	case p.v.QueryParam("done") == "":
		return nil
	case p.Trouble.Kills:
		return ui.Words("The worker is gone, and another is at work. In ten seconds it takes the step over.")
	case p.Trouble.Skips:
		return ui.Words("The clock was moved. What the run waited for has come, if it had begun to wait.")
	}
	return nil
}
