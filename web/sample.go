package web

import (
	"context"
	"errors"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/trigger"
	"tollgate/tenants"
)

// errSecond ends the transaction of a form that was sent twice at once.
var errSecond = errors.New("this form was sent before")

// tryTemplate runs a template with its own sample at once, making its pipeline first if
// the workspace has none of it. It leads to the run.
func (s *Server) tryTemplate(v *visit) error {
	template, ok := pipeline.TemplateBySlug(v.Param("slug"))
	if !ok {
		return errNotFound
	}
	key := v.FormValue("key")
	var run engine.Run
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		id, made, err := v.pipelineOf(ctx, tx, template)
		if err != nil {
			return err
		}
		run, err = v.startSample(ctx, tx, id, template.Document, key)
		if other, ok := errors.AsType[*engine.OtherStart](err); ok && made {
			run, err = other.First, errSecond // the pipeline made here is not needed
		}
		return err
	})
	if err != nil && !errors.Is(err, errSecond) {
		return err
	}
	return v.redirect(v.path("runs", run.ID.String()))
}

// pipelineOf finds the workspace's live pipeline of a template or makes it, and tells
// which.
func (v *visit) pipelineOf(ctx context.Context, tx tenants.Tx, template pipeline.Template) (pipeline.ID, bool, error) {
	made, there, err := onlyOf(ctx, tx, template.Slug)
	if err != nil || there {
		return made.ID, false, err
	}
	document, err := v.fitting(ctx, tx, template.Document)
	if err != nil {
		return pipeline.ID{}, false, err
	}
	id, err := pipeline.Create(ctx, tx, document, template.Slug, v.me.User.ID)
	if err != nil {
		return pipeline.ID{}, false, err
	}
	_, err = pipeline.Publish(ctx, tx, id, "From the template “"+template.Title+"”", v.me.User.ID)
	return id, true, err
}

// fitting is a template's document for this workspace. Reviews bar whoever started the
// run; where nobody else may decide, they could never be answered, so there they allow
// it. The outline of the pipeline says so.
func (v *visit) fitting(ctx context.Context, tx tenants.Tx, document pipeline.Document) (pipeline.Document, error) {
	alone, err := v.decidesAlone(ctx, tx)
	if err != nil || !alone {
		return document, err
	}
	return document.WithRequester(), nil
}

// decidesAlone tells that nobody else in the workspace may decide.
func (v *visit) decidesAlone(ctx context.Context, tx tenants.Tx) (bool, error) {
	members, err := tenants.Members(ctx, tx)
	for _, one := range members {
		if one.User.ID != v.me.User.ID && one.Role.May(tenants.Decide) {
			return false, err
		}
	}
	return true, err
}

// startSample starts a run with the sample of a document.
func (v *visit) startSample(ctx context.Context, tx tenants.Tx, id pipeline.ID, document pipeline.Document, key string) (engine.Run, error) {
	input, files, err := document.SampleInput()
	if err != nil {
		return engine.Run{}, err
	}
	return trigger.ByHand{
		Pipeline: id, Input: input, Files: files, Sample: true, By: v.me, FormKey: key,
	}.Start(ctx, tx, v.s.Engine)
}
