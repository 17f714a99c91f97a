package web

import (
	"context"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// runMoney is one kind of funds of a run against the cap that binds it.
type runMoney struct {
	Funds ledger.Funds
	Run   ledger.Standing
	Month *ledger.Standing // of the workspace, where the run has no cap of its own
	Name  string           // of the month
}

// readRunMoney reads the funds that the run has used or may use.
func readRunMoney(ctx context.Context, tx tenants.Tx, id engine.RunID, program *pipeline.Program) ([]runMoney, error) {
	cost, err := ledger.RunCost(ctx, tx, ledger.RunID(id))
	if err != nil {
		return nil, err
	}
	may := fundsOf(program)
	var all []runMoney
	for _, funds := range []ledger.Funds{ledger.Real, ledger.Pretend} {
		money := runMoney{Funds: funds, Run: cost.Of(funds)}
		if !may[funds] && money.Run.Spent == 0 && money.Run.Held == 0 {
			continue
		}
		if money.Run.Limit == nil {
			month, err := ledger.Month(ctx, tx)
			if err != nil {
				return nil, err
			}
			standing := month.Of(funds)
			money.Month, money.Name = &standing, monthName(month)
		}
		all = append(all, money)
	}
	return all, nil
}

// fundsOf are the funds that the models of a program are paid from.
func fundsOf(program *pipeline.Program) map[ledger.Funds]bool {
	funds := map[ledger.Funds]bool{}
	var walk func(nodes []*pipeline.Node)
	walk = func(nodes []*pipeline.Node) {
		for _, node := range nodes {
			if ask := node.AI(); ask != nil {
				for _, model := range ask.Models {
					funds[fundsOfModel(model)] = true
				}
			}
			for _, list := range node.Lists {
				walk(list.Nodes)
			}
		}
	}
	walk(program.Roots())
	return funds
}

// fundsOfModel tells by a model's name what pays for it, as the price list does.
func fundsOfModel(model string) ledger.Funds {
	return ledger.FundsOf(model)
}

// words say what the bar shows, with whose cap it is.
func (m runMoney) words() ui.Sentence {
	unit := ""
	if m.Funds == ledger.Pretend {
		unit = " pretend"
	}
	out := ui.Sentence{ui.Strong(ui.Dollars(int64(m.Run.Spent)))}
	if m.Run.Limit != nil {
		out = append(out, ui.Plain(" of the run’s "), ui.Strong(ui.Dollars(int64(*m.Run.Limit))), ui.Plain(unit+" cap"))
	} else {
		out = append(out, ui.Plain(unit+" spent by this run"))
	}
	if m.Run.Held > 0 {
		out = append(out, ui.Plain(" · "+ui.Dollars(int64(m.Run.Held))+" reserved"))
	}
	if m.Run.Overrun > 0 {
		out = append(out, ui.Plain(" · "+ui.Dollars(int64(m.Run.Overrun))+" beyond what was reserved"))
	}
	if m.Month != nil && m.Month.Limit != nil {
		out = append(out, ui.Plain(". The workspace has spent "+ui.Dollars(int64(m.Month.Spent))+" of its "+ui.Dollars(int64(*m.Month.Limit))+" in "+m.Name+"."))
	}
	return out
}

// binding is where the place stands whose cap binds.
func (m runMoney) binding() ledger.Standing {
	if m.Month != nil {
		return *m.Month
	}
	return m.Run
}

// meter is the bar of the cap that binds, nil where there is none or it allows nothing.
func (m runMoney) meter() *ui.Meter {
	standing := m.binding()
	if standing.Limit == nil || *standing.Limit == 0 {
		return nil
	}
	meter := meterOf("Spent against the cap", standing)
	return &meter
}

// note labels pretend dollars wherever an amount could be taken for real money.
func (m runMoney) note() string {
	switch {
	case m.Funds == ledger.Pretend:
		return "Pretend dollars: what the practice model would have cost. Nobody pays them."
	case m.binding().Limit == nil:
		return "No cap is set."
	}
	return ""
}
