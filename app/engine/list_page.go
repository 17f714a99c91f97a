package engine

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// Page is a part of a list of runs, newest first. Where there is more, runs older than Next
// are on the next page.
type Page struct {
	Lines []Line
	More  bool
	Next  RunID
}

// mostFound bounds how many runs are looked at for one page of those that have a value. The
// page may then hold fewer runs than there are, and the next one goes on behind them.
const mostFound = 10_000

// ListRuns reads the newest runs of a filter, from 1 to 200 of them, that are older than
// before, which may be zero. It returns an error for a group that there is not.
func ListRuns(ctx context.Context, tx tenants.Tx, filter Filter, before RunID, limit int) (Page, error) {
	limit = min(max(limit, 1), 200)
	if filter.looks() {
		return listFound(ctx, tx, filter, before, limit)
	}
	c, err := filter.choose(tx)
	if err != nil {
		return Page{}, err
	}
	if !before.IsZero() {
		c.and("r.id < ?", before)
	}
	return readPage(ctx, tx, `SELECT r.* FROM runs r WHERE `+c.where()+` ORDER BY r.id DESC LIMIT `+c.bind(limit+1), c.args, limit)
}

// readPage reads the lines of runs that a query gives, one more than the page has.
func readPage(ctx context.Context, tx tenants.Tx, query string, args []any, limit int) (Page, error) {
	rows, _ := tx.Query(ctx, `WITH page AS (`+query+`)`+lineQuery+` ORDER BY r.id DESC`, args...)
	lines, err := pgx.CollectRows(rows, scanLine)
	if err != nil {
		return Page{}, fmt.Errorf("list runs: %w", err)
	}
	page := Page{Lines: lines}
	if page.More = len(lines) > limit; page.More {
		page.Lines = lines[:limit]
		page.Next = lines[limit-1].Run.ID
	}
	return page, nameSteps(ctx, tx, page.Lines)
}

// listFound reads runs that have a value. There are two ways, each good where the other is
// not: to put those that have it in order, or to ask the newest runs one by one.
func listFound(ctx context.Context, tx tenants.Tx, filter Filter, before RunID, limit int) (Page, error) {
	candidates := filter.byValue
	if many, err := filter.findsMany(ctx, tx, before); err != nil {
		return Page{}, err
	} else if many {
		candidates = filter.byAge
	}
	c, seen, fits, err := candidates(tx, before)
	if err != nil {
		return Page{}, err
	}
	page, err := readPage(ctx, tx, `
		SELECT r.* FROM (`+seen+` OFFSET 0) c CROSS JOIN LATERAL (
			SELECT r.* FROM runs r WHERE r.tenant_id = $1 AND r.id = c.id OFFSET 0) r
		WHERE `+fits(&c)+` ORDER BY c.id DESC LIMIT `+c.bind(limit+1), c.args, limit)
	if err != nil || page.More {
		return page, err
	}
	c, seen, _, _ = candidates(tx, before)
	rows, _ := tx.Query(ctx, fmt.Sprintf(`SELECT id FROM (%s OFFSET 0) c ORDER BY id DESC OFFSET %d LIMIT 1`, seen, mostFound-1), c.args...)
	last, err := pgx.CollectRows(rows, pgx.RowTo[RunID])
	if err != nil {
		return page, fmt.Errorf("look where a list of runs goes on: %w", err)
	}
	if page.More = len(last) > 0; page.More {
		page.Next = last[0]
	}
	return page, nil
}

// findsMany tells whether too many runs have what is looked for to put them in order. Those
// that have one whole value are in order as they are stored.
func (f Filter) findsMany(ctx context.Context, tx tenants.Tx, before RunID) (bool, error) {
	if f.Exact {
		return false, nil
	}
	c := choice{args: []any{tx.Tenant}}
	f.find(&c)
	if !before.IsZero() {
		c.and("s.run_id < ?", before)
	}
	var n int
	err := tx.QueryRow(ctx, fmt.Sprintf(`SELECT count(*) FROM (SELECT FROM run_search s WHERE %s LIMIT %d) counted`, c.where(), mostFound+1), c.args...).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("count the runs that have a value: %w", err)
	}
	return n > mostFound, nil
}

// byValue are the newest runs that have the value; what else is asked of them comes after.
func (f Filter) byValue(tx tenants.Tx, before RunID) (choice, string, func(*choice) string, error) {
	c := choice{args: []any{tx.Tenant}}
	f.find(&c)
	if !before.IsZero() {
		c.and("s.run_id < ?", before)
	}
	seen := fmt.Sprintf(`SELECT DISTINCT s.run_id AS id FROM run_search s WHERE %s ORDER BY 1 DESC LIMIT %d`, c.where(), mostFound)
	c.texts = nil
	return c, seen, func(c *choice) string { f.chooseInto(c); return c.where() }, f.known()
}

// byAge are the newest runs of all that is asked but for the value.
func (f Filter) byAge(tx tenants.Tx, before RunID) (choice, string, func(*choice) string, error) {
	c, err := f.choose(tx)
	if !before.IsZero() {
		c.and("r.id < ?", before)
	}
	seen := fmt.Sprintf(`SELECT r.id FROM runs r WHERE %s ORDER BY r.id DESC LIMIT %d`, c.where(), mostFound)
	c.texts = nil
	return c, seen, func(c *choice) string { return f.has(c) }, err
}
