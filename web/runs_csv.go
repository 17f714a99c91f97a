package web

import (
	"context"
	"strconv"
	"time"

	"tollgate/app/engine"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// mostInCSV bounds the runs of one file; a filter chooses others.
const mostInCSV = 5000

// runsCSV hands out the runs of a filter as a table, each with why it stands as it does. It
// is read page by page.
func (s *Server) runsCSV(v *visit) error {
	filter, err := v.readRunFilter(v.QueryParam)
	if err != nil {
		return err
	}
	head := []string{"Run", "Number", "Pipeline", "Version", "Status", "Why, and what happens next", "Started", "Started by", "Ended", "Address"}
	if v.maySeeMoney() {
		head = append(head, "Cost in USD")
	}
	records := [][]string{head}
	var before engine.RunID
	for more := true; more && len(records) <= mostInCSV; {
		var all []news
		err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
			page, err := engine.ListRuns(ctx, tx, filter.folded(), before, 200)
			if err != nil {
				return err
			}
			more, before = page.More, page.Next
			all, err = v.newsOf(ctx, tx, page.Lines)
			return err
		})
		if err != nil {
			return err
		}
		for _, n := range all {
			records = append(records, v.runRecord(n))
		}
	}
	return v.csvFile("runs-"+v.now.In(v.zone()).Format(time.DateOnly), records)
}

// runRecord is a run as a line of the file. Times are in UTC, which spreadsheets sort.
func (v *visit) runRecord(n news) []string {
	ended := ""
	if n.Run.EndedAt != nil {
		ended = n.Run.EndedAt.UTC().Format(time.RFC3339)
	}
	record := []string{
		n.Run.Name, strconv.FormatInt(n.Run.Number, 10), n.Run.PipelineName, strconv.Itoa(n.Run.Version), n.word(), n.reason(v.now, v.zone()).String(),
		n.Run.CreatedAt.UTC().Format(time.RFC3339), n.Run.StartedName, ended, v.s.origin + v.path("runs", n.Run.ID.String()),
	}
	if v.maySeeMoney() {
		record = append(record, ledger.Micros(n.CostMicros).Plain())
	}
	return record
}
