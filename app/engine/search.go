package engine

import (
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// searchRows are what runs can be found by, in columns.
type searchRows struct {
	runs           []RunID
	fields, values []string
}

func (r *searchRows) add(run RunID, found []pipeline.Found) {
	for _, one := range found {
		r.runs, r.fields, r.values = append(r.runs, run), append(r.fields, one.Field), append(r.values, one.Value)
	}
}

// queue adds them, each once.
func (r *searchRows) queue(b *tenants.Batch, tenant tenants.ID) {
	if len(r.runs) == 0 {
		return
	}
	b.Queue(`
		INSERT INTO run_search (tenant_id, run_id, field, value)
		SELECT $1, n.* FROM unnest($2::uuid[], $3::text[], $4::text[]) AS n ON CONFLICT DO NOTHING`,
		tenant, r.runs, r.fields, r.values)
}
