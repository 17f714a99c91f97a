package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// usageView is where the money of a month went, of one kind of funds.
type usageView struct {
	v       *visit
	Month   ledger.UsageMonth
	Current bool // the month is not over
	Funds   ledger.Funds
	Both    bool // the workspace has charges of both funds in the month
	Total   ledger.UsageLine
	Before  ledger.UsageLine // the month before
	By      map[ledger.UsageBy][]ledger.UsageLine
	Cap     *ledger.Micros // of the workspace in the current month
	Course  ledger.Forecast
	names   usageNames
}

// usageTables are the sums that the page shows, in their order.
var usageTables = []ledger.UsageBy{ledger.ByDay, ledger.ByPipeline, ledger.ByModel, ledger.ByKey, ledger.ByCostCentre, ledger.ByMember}

func (s *Server) usagePage(v *visit) error {
	view := usageView{v: v}
	if err := v.inTx(view.read); err != nil {
		return err
	}
	return v.page(http.StatusOK, v.frame("Usage, "+view.monthName(), inUsage), usageBody(view))
}

// monthForm is how addresses name a month.
const monthForm = "2006-01"

// monthParam reads the month that the address names, in the workspace's zone; the
// current one where it names none or one that is to come.
func (v *visit) monthParam(ctx context.Context, tx tenants.Tx) (ledger.UsageMonth, error) {
	at := tx.Now
	if asked, err := time.ParseInLocation(monthForm, v.QueryParam("month"), v.workspaceZone()); err == nil {
		if middle := asked.AddDate(0, 0, 14); middle.Before(at) {
			at = middle
		}
	}
	return ledger.MonthAt(ctx, tx, at)
}

// workspaceZone is where the workspace's days and months begin, whatever zone the
// person reads times in.
func (v *visit) workspaceZone() *time.Location {
	zone, err := time.LoadLocation(v.me.Tenant.Zone)
	if err != nil {
		return time.UTC
	}
	return zone
}

func (u *usageView) read(ctx context.Context, tx tenants.Tx) error {
	var err error
	if u.Month, err = u.v.monthParam(ctx, tx); err != nil {
		return err
	}
	u.Current = tx.Now.Before(u.Month.To)
	if err := u.readTotals(ctx, tx); err != nil {
		return err
	}
	u.By = map[ledger.UsageBy][]ledger.UsageLine{}
	for _, by := range usageTables {
		if u.By[by], err = ledger.UsageOf(ctx, tx, u.Month, u.Funds, by); err != nil {
			return err
		}
	}
	if u.Current {
		month, err := ledger.Month(ctx, tx)
		if err != nil {
			return err
		}
		u.Cap = month.Of(u.Funds).Limit
		if u.Course, err = ledger.ForecastOf(ctx, tx, ledger.OfTenant(tx.Tenant), u.Funds, u.Cap); err != nil {
			return err
		}
	}
	return u.names.read(ctx, tx, u.By[ledger.ByMember])
}

// readTotals chooses the funds: those asked for, else real dollars where any were spent.
func (u *usageView) readTotals(ctx context.Context, tx tenants.Tx) error {
	totals := map[ledger.Funds]ledger.UsageLine{}
	for _, funds := range []ledger.Funds{ledger.Real, ledger.Pretend} {
		total, err := totalOf(ctx, tx, u.Month, funds)
		if err != nil {
			return err
		}
		totals[funds] = total
	}
	u.Both = totals[ledger.Real].Calls > 0 && totals[ledger.Pretend].Calls > 0
	u.Funds = ledger.Real
	if asked := ledger.Funds(u.v.QueryParam("funds")); asked == ledger.Pretend || asked == "" && totals[ledger.Real].Calls == 0 && totals[ledger.Pretend].Calls > 0 {
		u.Funds = ledger.Pretend
	}
	u.Total = totals[u.Funds]
	before, err := ledger.MonthAt(ctx, tx, u.Month.From.Add(-time.Hour))
	if err != nil {
		return err
	}
	u.Before, err = totalOf(ctx, tx, before, u.Funds)
	return err
}

func totalOf(ctx context.Context, tx tenants.Tx, month ledger.UsageMonth, funds ledger.Funds) (ledger.UsageLine, error) {
	lines, err := ledger.UsageOf(ctx, tx, month, funds, ledger.ByMonth)
	if err != nil || len(lines) == 0 {
		return ledger.UsageLine{}, err
	}
	return lines[0], nil
}

// usageNames are what to call things by the keys of lines.
type usageNames struct {
	pipelines, members, keys map[string]string
}

func (n *usageNames) read(ctx context.Context, tx tenants.Tx, members []ledger.UsageLine) error {
	n.pipelines, n.members, n.keys = map[string]string{}, map[string]string{}, map[string]string{}
	all, err := pipeline.List(ctx, tx)
	if err != nil {
		return err
	}
	for _, one := range all {
		n.pipelines[one.ID.String()] = one.Name
	}
	keys, err := tenants.ProviderKeys(ctx, tx)
	if err != nil {
		return err
	}
	for _, key := range keys {
		n.keys[key.ID.String()] = keyName(key)
	}
	var ids []tenants.UserID
	for _, line := range members {
		if id, err := tenants.ParseID[tenants.User](line.Key); err == nil {
			ids = append(ids, id)
		}
	}
	names, err := tenants.Names(ctx, tx, ids)
	for id, name := range names {
		n.members[id.String()] = name
	}
	return err
}

// of is what to call a line.
func (n usageNames) of(by ledger.UsageBy, key string) string {
	switch by {
	case ledger.ByPipeline:
		return cmp.Or(n.pipelines[key], "A removed pipeline")
	case ledger.ByMember:
		return cmp.Or(n.members[key], "Started without a person")
	case ledger.ByKey:
		if key == "" {
			return "Our key"
		}
		return cmp.Or(n.keys[key], "A removed key")
	case ledger.ByCostCentre:
		return cmp.Or(key, "No cost centre")
	}
	return modelName(key)
}

// monthName is the month with its year: "November 2026".
func (u usageView) monthName() string {
	return u.Month.From.In(u.v.workspaceZone()).Format("January 2006")
}

// address is the page's for a month and funds.
func (u usageView) address(from time.Time, funds ledger.Funds, more ...string) string {
	return u.v.path(append([]string{"usage"}, more...)...) + queryOf("month", from.In(u.v.workspaceZone()).Format(monthForm), "funds", string(funds))
}

// days are the days of the month with what each cost, those without a call too.
func (u usageView) days() []ledger.UsageLine {
	var out []ledger.UsageLine
	first := u.Month.From.In(u.v.workspaceZone())
	for day := range 31 {
		noon := time.Date(first.Year(), first.Month(), 1+day, 12, 0, 0, 0, time.UTC)
		if noon.Month() != first.Month() {
			break
		}
		line := ledger.UsageLine{Key: noon.Format(time.DateOnly)}
		if i := slices.IndexFunc(u.By[ledger.ByDay], func(l ledger.UsageLine) bool { return l.Key == line.Key }); i >= 0 {
			line = u.By[ledger.ByDay][i]
		}
		out = append(out, line)
	}
	return out
}

// passed is how many of the days have begun.
func (u usageView) passed(days []ledger.UsageLine) int {
	if !u.Current {
		return len(days)
	}
	return min(len(days), u.v.now.In(u.v.workspaceZone()).Day())
}

// dayWords write the day of a line: "1 Nov".
func dayWords(key string) string {
	day, err := time.Parse(time.DateOnly, key)
	if err != nil {
		return key
	}
	return day.Format("2 Jan")
}
