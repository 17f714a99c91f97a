package main

import (
	"context"
	"fmt"
	"slices"

	"tollgate/app/llm"
	"tollgate/app/mail"
	"tollgate/app/pipeline"
	"tollgate/app/trigger"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// seed makes the demo workspace in the database of DATABASE_URL.
func seed(ctx context.Context, p *program) error {
	if p.config.DatabaseURL == "" || p.config.Secret == nil {
		return fmt.Errorf("DATABASE_URL and TOLLGATE_SECRET must be set")
	}
	r, err := wire(ctx, settings{
		config: p.config, sender: mail.Mailbox{}, from: localFrom, practice: llm.NewPractice(0, 0),
	}, newLog(p.errs, true))
	if err != nil {
		return err
	}
	defer r.db.Close()
	if err := r.seedDemo(ctx); err != nil {
		return err
	}
	fmt.Fprintln(p.out, "the demo workspace is there")
	return nil
}

// demoCap is what the demo workspace may spend a month, in pretend dollars.
const demoCap = ledger.Micros(20_000_000)

// seedDemo makes the demo workspace: its people, a cap, a pipeline for each area of work,
// and one run on its way to a review. It can be called at every start; what is there
// stays as it is.
func (r *rooms) seedDemo(ctx context.Context) error {
	var owner tenants.Membership
	var people []tenants.Membership
	err := r.db.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		var err error
		if owner, err = tenants.SeedDemo(ctx, tx); err != nil {
			return err
		}
		people, err = tenants.DemoPeople(ctx, tx)
		return err
	})
	if err != nil {
		return fmt.Errorf("make the demo workspace: %w", err)
	}
	return r.db.InTx(ctx, owner.Tenant.ID, func(ctx context.Context, tx tenants.Tx) error {
		there, err := pipeline.List(ctx, tx)
		if err != nil || len(there) > 0 {
			return err
		}
		return r.fillDemo(ctx, tx, owner, builderOf(people, owner))
	})
}

// seedLocal makes the demo workspace and, in it, the pipeline that is broken on order.
func (r *rooms) seedLocal(ctx context.Context) error {
	if err := r.seedDemo(ctx); err != nil {
		return err
	}
	document, err := breakDocument()
	if err != nil {
		return err
	}
	owner, err := r.demoOwner(ctx)
	if err != nil {
		return err
	}
	return r.db.InTx(ctx, owner.Tenant.ID, func(ctx context.Context, tx tenants.Tx) error {
		there, err := pipeline.List(ctx, tx)
		if err != nil || slices.ContainsFunc(there, func(p pipeline.Pipeline) bool { return p.Template == breakTemplate }) {
			return err
		}
		id, err := pipeline.Create(ctx, tx, document, breakTemplate, owner.User.ID)
		if err != nil {
			return err
		}
		_, err = pipeline.Publish(ctx, tx, id, "Made by the program", owner.User.ID)
		return err
	})
}

func (r *rooms) demoOwner(ctx context.Context) (tenants.Membership, error) {
	var owner tenants.Membership
	err := r.db.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		var err error
		owner, err = tenants.SeedDemo(ctx, tx)
		return err
	})
	return owner, err
}

// builderOf is who starts the demo run: not the owner, who shall find it waiting for
// her and may not decide on her own.
func builderOf(people []tenants.Membership, owner tenants.Membership) tenants.Membership {
	for _, person := range people {
		if person.Role == tenants.Builder {
			return person
		}
	}
	return owner
}

func (r *rooms) fillDemo(ctx context.Context, tx tenants.Tx, owner, builder tenants.Membership) error {
	limit := demoCap
	err := ledger.SetCap(ctx, tx, ledger.Cap{Place: ledger.OfTenant(tx.Tenant), Funds: ledger.Pretend, Limit: &limit, By: owner.User.ID})
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for n, template := range pipeline.Templates() {
		if seen[template.Area] {
			continue
		}
		seen[template.Area] = true
		id, err := pipeline.Create(ctx, tx, template.Document, template.Slug, owner.User.ID)
		if err != nil {
			return err
		}
		if _, err := pipeline.Publish(ctx, tx, id, "From the template", owner.User.ID); err != nil {
			return fmt.Errorf("publish the template %q: %w", template.Slug, err)
		}
		if n > 0 {
			continue
		}
		if err := r.startSample(ctx, tx, id, template.Document, builder); err != nil {
			return err
		}
	}
	return nil
}

func (r *rooms) startSample(ctx context.Context, tx tenants.Tx, id pipeline.ID, document pipeline.Document, by tenants.Membership) error {
	input, files, err := document.SampleInput()
	if err != nil {
		return fmt.Errorf("read the sample of %q: %w", document.Name, err)
	}
	_, err = trigger.ByHand{Pipeline: id, Input: input, Files: files, Sample: true, By: by, FormKey: "demo"}.Start(ctx, tx, r.engine)
	return err
}
