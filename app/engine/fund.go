package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// priced sees to it that all is there which a call's money is worked out with: the prices,
// and whose keys pay for models that cost real dollars.
func (d *decider) priced(node *pipeline.Node) error {
	if node.Kind() != pipeline.KindAI {
		return nil
	}
	var missing error
	if d.scope.prices == nil {
		missing = d.ask(want{kind: wantPrices})
	}
	real := func(model string) bool { return ledger.FundsOf(model) == ledger.Real }
	if d.scope.keys == nil && slices.ContainsFunc(node.AI().Models, real) {
		missing = d.ask(want{kind: wantKeys})
	}
	return missing
}

// payer is whose key a model is called with, and which that is where the workspace has its
// own. What costs pretend dollars has no key.
func (d *decider) payer(model string) (ledger.Payer, ledger.KeyID) {
	return payerOf(d.scope.keys, model)
}

func payerOf(keys map[string]tenants.ProviderKeyID, model string) (ledger.Payer, ledger.KeyID) {
	provider, _, _ := strings.Cut(model, "/")
	if key, own := keys[provider]; own && ledger.FundsOf(model) == ledger.Real {
		return ledger.PayerOwn, ledger.KeyID(key)
	}
	return ledger.PayerPlatform, ledger.KeyID{}
}

// fund notes at a call's money where it counts: who started the run, its cost centre, the
// runs above, and the loops around with their limits.
func (d *decider) fund(reserved *ledger.Hold, around *frame) error {
	if reserved == nil {
		return nil
	}
	reserved.Member, reserved.CostCentre = d.run.StartedBy, d.costCentre()
	if !d.run.Parent.IsZero() && d.scope.above == nil {
		return d.ask(want{kind: wantAbove})
	}
	for _, run := range d.scope.above {
		reserved.Ancestors = append(reserved.Ancestors, ledger.RunID(run))
	}
	for f := around; f != nil && d.program.Document().Semantics >= chainRules; f = f.outer {
		if f.row.Kind == pipeline.KindRepeat && !f.row.Caught() {
			limit := ledger.Micros(d.program.Node(f.row.StepID).Repeat().MaxCost)
			reserved.Limits = append(reserved.Limits, ledger.StepLimit{Step: ledger.StepRunID(f.row.ID), Limit: limit})
		}
	}
	return nil
}

// Priced reads what models cost the workspace now, and with whose key they would be called,
// and returns what tells whether a call of a model can be priced.
func Priced(ctx context.Context, tx tenants.Tx) (func(model string) bool, error) {
	prices, err := ledger.Prices(ctx, tx)
	if err != nil {
		return nil, err
	}
	keys, err := tenants.KeysInUse(ctx, tx)
	if err != nil {
		return nil, err
	}
	return func(model string) bool {
		payer, _ := payerOf(keys, model)
		_, err := prices.PaidBy(payer).At(model, tx.Now)
		return err == nil
	}, nil
}

// maxCostCentre bounds the name of a cost centre, in characters.
const maxCostCentre = 100

// costCentre is who bears the run's costs, as its pipeline says; nobody named where that
// cannot be worked out from the input.
func (d *decider) costCentre() string {
	text := d.program.CostCentre()
	if text == nil {
		return ""
	}
	name, err := text.Render(context.Background(), expr.Scope{"input": d.scope.input})
	if err != nil {
		return ""
	}
	runes := []rune(strings.Join(strings.Fields(expr.Plain(name)), " "))
	return string(runes[:min(len(runes), maxCostCentre)])
}

// loopSpent is why a call cannot begin for which the money of a loop around it does not
// reach; nil for any other.
func (d *decider) loopSpent(node *pipeline.Node) *Failure {
	loop, ok := d.bars.spent[node.ID()]
	if !ok {
		return nil
	}
	return &Failure{Class: ClassLimit, loop: loop, Message: "The loop around this step has not enough money left for this call."}
}

// spentInRound ends a loop in the middle of a round, since its money does not reach for the
// next call: as its limit says, with the rounds that were whole. The round has failed.
func (d *decider) spentInRound(loop, round *frame) error {
	node := d.program.Node(loop.row.StepID)
	spent, err := d.spentIn(round)
	if err != nil {
		return err
	}
	loop.row.CostMicros += spent
	rounds, limits := round.row.Turn, node.Repeat()
	switch {
	case loop.row.Chosen == "" || limits.AtLimit == pipeline.LimitFail:
		d.note(loop)
		return d.failGroups(loop, limitFailure(node, rounds, pipeline.EndCost, "Its end condition never held."))
	case limits.AtLimit == pipeline.LimitAsk:
		return d.askAtLimit(node, loop, rounds, pipeline.EndCost)
	}
	return d.endLoop(node, loop, rounds, pipeline.EndCost)
}

// barOf is what a hold that did not fit keeps from beginning: a step that waits for money,
// or one in a loop that has spent its own.
func barOf(reached *ledger.CapReached, step string) bars {
	if reached.Scope == ledger.ScopeStep {
		if loop, err := tenants.ParseID[StepRun](reached.ID); err == nil {
			return bars{spent: map[string]StepRunID{step: loop}}
		}
	}
	return bars{capped: map[string]string{step: reached.String()}, cap: reached}
}

// pricesLast is how long a workspace's prices are taken to be what they were.
const pricesLast = time.Second

// recentPrices are the prices of workspaces as they were read a moment ago, so that calls
// which begin together read them once.
type recentPrices struct {
	mu sync.Mutex
	of map[tenants.ID]readPrices
}

type readPrices struct {
	list ledger.PriceList
	at   time.Time
}

func (r *recentPrices) recent(tenant tenants.ID) ledger.PriceList {
	r.mu.Lock()
	defer r.mu.Unlock()
	if read := r.of[tenant]; time.Since(read.at) < pricesLast {
		return read.list
	}
	delete(r.of, tenant)
	return nil
}

func (e *Engine) pricesOf(ctx context.Context, tx tenants.Tx) (ledger.PriceList, error) {
	at := time.Now()
	list, err := ledger.Prices(ctx, tx)
	if err != nil {
		return nil, err
	}
	e.prices.mu.Lock()
	defer e.prices.mu.Unlock()
	if e.prices.of == nil {
		e.prices.of = map[tenants.ID]readPrices{}
	}
	e.prices.of[tx.Tenant] = readPrices{list, at}
	return list, nil
}

// runsAbove are the runs above one, the nearest first.
func runsAbove(ctx context.Context, tx tenants.Tx, run Run) ([]RunID, error) {
	rows, _ := tx.Query(ctx, `
		WITH RECURSIVE above (id, up) AS (
			SELECT $2::uuid, 1
			UNION ALL
			SELECT r.parent_run, above.up + 1 FROM above JOIN runs r ON r.tenant_id = $1 AND r.id = above.id WHERE r.parent_run IS NOT NULL AND above.up < $3
		)
		SELECT id FROM above ORDER BY up`, tx.Tenant, run.Parent, pipeline.MaxChildDepth+1)
	above, err := pgx.CollectRows(rows, pgx.RowTo[RunID])
	if err != nil {
		return nil, fmt.Errorf("find the runs above one: %w", err)
	}
	return above, nil
}

// funded works out again what a waiting step's call would reserve, and where it counts.
func (e *Engine) funded(ctx context.Context, tx tenants.Tx, d *decider, node *pipeline.Node, step StepRun, input []byte) (*ledger.Hold, error) {
	groups, err := groupsAround(ctx, tx, step.Parent)
	if err != nil {
		return nil, err
	}
	if d.scope.prices, err = e.pricesOf(ctx, tx); err != nil {
		return nil, err
	}
	if d.scope.keys, err = tenants.KeysInUse(ctx, tx); err != nil {
		return nil, err
	}
	if !d.run.Parent.IsZero() {
		if d.scope.above, err = runsAbove(ctx, tx, d.run); err != nil {
			return nil, err
		}
	}
	hold, _ := d.reserve(node, step, input)
	if err := d.fund(hold, d.frames(groups)); err != nil && !errors.Is(err, errMissing) {
		return nil, err
	}
	return hold, nil
}
