package web

import (
	"archive/zip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"tollgate/app/engine"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// Bounds of a run that is taken away. What there is no room for is named in run.json.
const (
	stepsAtOnce    = 200
	valuesAtOnce   = 50
	mostKeptBytes  = 512 << 20
	mostKeptValues = 100_000
)

// downloadedRun is a run as run.json has it. Values are files beside it.
type downloadedRun struct {
	ID        engine.RunID    `json:"id"`
	Pipeline  string          `json:"pipeline"`
	Version   int             `json:"version"`
	Number    int64           `json:"number"`
	Name      string          `json:"name"`
	State     engine.RunState `json:"state"`
	StartedBy string          `json:"started_by,omitempty"`
	StartedAt time.Time       `json:"started_at"`
	EndedAt   *time.Time      `json:"ended_at,omitempty"`
	Failure   *engine.Failure `json:"failure,omitempty"`
	Input     string          `json:"input,omitempty"`
	Result    string          `json:"result,omitempty"`
}

// downloadedStep is one execution of a step.
type downloadedStep struct {
	ID         engine.StepRunID  `json:"id"`
	Within     *engine.StepRunID `json:"within,omitempty"`
	Step       string            `json:"step"`
	Name       string            `json:"name,omitempty"`
	Kind       string            `json:"kind"`
	Turn       int               `json:"turn,omitempty"`
	State      engine.StepState  `json:"state"`
	Tries      int               `json:"tries"`
	BeganAt    time.Time         `json:"began_at"`
	EndedAt    *time.Time        `json:"ended_at,omitempty"`
	CostMicros *int64            `json:"cost_micro_usd,omitempty"`
	Failure    *engine.Failure   `json:"failure,omitempty"`
	Input      string            `json:"input,omitempty"`
	Output     string            `json:"output,omitempty"`
}

// downloadRun hands out a run with all its values, as one file. It is read in parts, each in
// a transaction of its own, so that a slow reader keeps nothing open.
func (s *Server) downloadRun(v *visit) error {
	id, err := idParam[engine.Run](v, "run")
	if err != nil {
		return err
	}
	d := runDownload{v: v, id: id, named: map[engine.Digest]string{}}
	if err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		d.view, err = engine.ProgramOf(ctx, tx, id)
		return err
	}); err != nil {
		return err
	}
	name := fileName(d.view.Run.PipelineName+" "+fmt.Sprint(d.view.Run.Number), d.view.Run.Input) + ".zip"
	h := v.Response().Header()
	h.Set("Content-Type", "application/zip")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	h.Set("Content-Security-Policy", contentPolicy+"; sandbox")
	v.Response().WriteHeader(http.StatusOK)
	if err := d.write(v.Response()); err != nil {
		v.s.Log.ErrorContext(v.ctx(), "a download was cut off", "ref", v.ref, "error", err)
		panic(http.ErrAbortHandler) // so that nobody takes the beginning for the whole
	}
	return nil
}

// runDownload is a run on its way out.
type runDownload struct {
	v     *visit
	id    engine.RunID
	view  engine.View // only the run and its program
	named map[engine.Digest]string
	left  []string // values for which there is no room
}

func (d *runDownload) write(to io.Writer) error {
	archive := zip.NewWriter(to)
	if err := d.writeValues(archive); err != nil {
		return err
	}
	file, err := archive.Create("run.json")
	if err != nil {
		return err
	}
	if err := d.writeRun(file); err != nil {
		return err
	}
	return archive.Close()
}

// writeValues writes each value once, under a name by its content.
func (d *runDownload) writeValues(archive *zip.Writer) error {
	var after engine.Digest
	var bytes int64
	for len(d.named)+len(d.left) < mostKeptValues {
		var kept []engine.Kept
		err := d.v.inTx(func(ctx context.Context, tx tenants.Tx) error {
			var err error
			kept, err = engine.KeptAfter(ctx, tx, d.id, after, valuesAtOnce)
			return err
		})
		if err != nil || len(kept) == 0 {
			return err
		}
		for _, one := range kept {
			after = one.Digest
			if bytes += one.Size; bytes > mostKeptBytes {
				d.left = append(d.left, one.Digest.String())
				continue
			}
			if err := d.writeValue(archive, one); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *runDownload) writeValue(archive *zip.Writer, one engine.Kept) error {
	var content engine.Content
	err := d.v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		content, err = engine.ValueOf(ctx, tx, d.id, one.Digest)
		return err
	})
	if err != nil {
		return err
	}
	ending, known := endings[one.MediaType]
	if !known {
		ending = ".bin"
	}
	name := "values/" + one.Digest.String() + ending
	file, err := archive.Create(name)
	if err != nil {
		return err
	}
	d.named[one.Digest] = name
	_, err = file.Write(content.Bytes)
	return err
}

// writeRun writes run.json, its steps one by one.
func (d *runDownload) writeRun(to io.Writer) error {
	run := d.view.Run
	head, err := json.MarshalIndent(downloadedRun{
		ID: run.ID, Pipeline: run.PipelineName, Version: run.Version, Number: run.Number, Name: run.Name, State: run.State, StartedBy: run.StartedName,
		StartedAt: run.CreatedAt, EndedAt: run.EndedAt, Failure: d.discreet(run.Failure), Input: d.named[run.Input], Result: d.named[run.Result],
	}, "", "  ")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(to, "{\"run\": %s,\n\"not_included\": ", head); err != nil {
		return err
	}
	left, _ := json.Marshal(append([]string{}, d.left...))
	if _, err := fmt.Fprintf(to, "%s,\n\"steps\": [", left); err != nil {
		return err
	}
	if err := d.writeSteps(to); err != nil {
		return err
	}
	_, err = io.WriteString(to, "\n]}\n")
	return err
}

func (d *runDownload) writeSteps(to io.Writer) error {
	var after engine.StepRunID
	comma := "\n"
	for {
		var steps []engine.StepRun
		err := d.v.inTx(func(ctx context.Context, tx tenants.Tx) error {
			var err error
			steps, err = engine.StepRunsAfter(ctx, tx, d.id, after, stepsAtOnce)
			return err
		})
		if err != nil || len(steps) == 0 {
			return err
		}
		for _, step := range steps {
			after = step.ID
			line, err := json.Marshal(d.step(step))
			if err != nil {
				return err
			}
			if _, err := io.WriteString(to, comma+string(line)); err != nil {
				return err
			}
			comma = ",\n"
		}
	}
}

func (d *runDownload) step(s engine.StepRun) downloadedStep {
	out := downloadedStep{
		ID: s.ID, Step: s.StepID, Kind: string(s.Kind), Turn: s.Turn, State: s.State, Tries: s.Attempt, BeganAt: s.BegunAt, EndedAt: s.EndedAt,
		Failure: d.discreet(s.Failure), Input: d.named[s.Input], Output: d.named[s.Output],
	}
	if !s.Parent.IsZero() {
		out.Within = &s.Parent
	}
	if node := d.view.Program.Node(s.StepID); node != nil {
		out.Name = ui.Clean(node.Step.Name)
	}
	if d.v.maySeeMoney() {
		out.CostMicros = &s.CostMicros
	}
	return out
}

// discreet leaves the words out for who may not see money: they may name amounts.
func (d *runDownload) discreet(f *engine.Failure) *engine.Failure {
	if f == nil || d.v.maySeeMoney() {
		return f
	}
	return &engine.Failure{Class: f.Class, StepID: f.StepID, Raised: f.Raised}
}
