package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// compareView shows in what two versions differ, and offers to make the earlier one live.
type compareView struct {
	v        *visit
	One      pipeline.Pipeline
	From, To pipeline.Version
	Restores bool // asks whether To is to be live again; From is live
}

// comparePage compares any two versions.
func (s *Server) comparePage(v *visit) error { return s.showCompare(v, false) }

// restorePage shows what changes if an earlier version is made live again; only its form
// does that.
func (s *Server) restorePage(v *visit) error { return s.showCompare(v, true) }

func (s *Server) showCompare(v *visit, restores bool) error {
	id, err := idParam[pipeline.Pipeline](v, "pipeline")
	if err != nil {
		return err
	}
	view := compareView{v: v, Restores: restores}
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		if view.One, err = pipeline.ByID(ctx, tx, id); err != nil {
			return err
		}
		from, to := view.numbers()
		if view.From, err = pipeline.VersionByNumber(ctx, tx, id, from); err != nil {
			return err
		}
		view.To, err = pipeline.VersionByNumber(ctx, tx, id, to)
		return err
	})
	if err != nil {
		return err
	}
	return v.page(http.StatusOK, v.frame(view.title(), inPipelines), compareBody(view))
}

// numbers are the versions to compare: those that the address names, else the live one and
// the one before it.
func (c compareView) numbers() (from, to int) {
	from, to = number(c.v.QueryParam("from"), c.One.Live-1), number(c.v.QueryParam("to"), c.One.Live)
	if c.Restores {
		from, to = c.One.Live, number(c.v.QueryParam("version"), 0)
	}
	return from, to
}

func number(text string, otherwise int) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return otherwise
}

func (c compareView) title() string {
	if c.Restores {
		return fmt.Sprintf("Make v%d live again?", c.To.Number)
	}
	return fmt.Sprintf("From v%d to v%d", c.From.Number, c.To.Number)
}

func (c compareView) changes() []pipeline.Change {
	return pipeline.Changes(c.From.Document, c.To.Document)
}

// restoreVersion publishes an earlier version anew, as the next one. A draft that has no
// changes of its own follows.
func (s *Server) restoreVersion(v *visit) error {
	id, err := idParam[pipeline.Pipeline](v, "pipeline")
	if err != nil {
		return err
	}
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		one, err := pipeline.Lock(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case strconv.Itoa(one.Live) != v.FormValue("live"):
			return errChangedSince
		}
		wanted := number(v.FormValue("version"), 0)
		made, err := pipeline.Restore(ctx, tx, id, wanted, fmt.Sprintf("v%d again", wanted), v.me.User.ID)
		if err != nil {
			return err
		}
		return v.auditPublished(ctx, tx, id, map[string]any{"version": made, "again": wanted})
	})
	if err != nil {
		return err
	}
	return v.redirect(v.path("pipelines", id.String(), "versions"))
}

// changeLines show changes with the words that differ.
func changeLines(changes []pipeline.Change) []changeLine {
	var out []changeLine
	for _, one := range changes {
		line := changeLine{Says: one.Says}
		if one.Before != "" || one.After != "" {
			line.Words = pipeline.DiffWords(one.Before, one.After)
		}
		out = append(out, line)
	}
	return out
}

type changeLine struct {
	Says  string
	Words []pipeline.WordRun
}
