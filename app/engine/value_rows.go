package engine

import (
	"cmp"
	"slices"

	"tollgate/tenants"
)

// valueRows are values to store and the runs that need them.
type valueRows struct{ rows []valueRow }

type valueRow struct {
	run       RunID
	digest    Digest
	mediaType string
	content   []byte
}

// add takes JSON up; none has the zero digest.
func (v *valueRows) add(run RunID, content []byte) Digest {
	if content == nil {
		return Digest{}
	}
	return v.addAs(run, mediaJSON, content)
}

func (v *valueRows) addAs(run RunID, mediaType string, content []byte) Digest {
	row := valueRow{run, DigestOf(content), mediaType, content}
	v.rows = append(v.rows, row)
	return row.digest
}

// queue stores what is not there yet. Equal values of two transactions meet on one row,
// so everybody stores in the order of digests.
func (v *valueRows) queue(b *tenants.Batch, tenant tenants.ID) {
	if len(v.rows) == 0 {
		return
	}
	slices.SortFunc(v.rows, func(x, y valueRow) int {
		return cmp.Or(slices.Compare(x.digest[:], y.digest[:]), compareIDs(x.run, y.run))
	})
	var digests, contents [][]byte
	var sizes []int64
	var mediaTypes []string
	var runs []RunID
	for _, row := range v.rows {
		inline := row.content
		if len(inline) > chunkSize {
			inline = nil
		}
		digests, contents = append(digests, row.digest.bytes()), append(contents, inline)
		sizes, mediaTypes, runs = append(sizes, int64(len(row.content))), append(mediaTypes, row.mediaType), append(runs, row.run)
	}
	b.Queue(`
		WITH given AS (
			SELECT * FROM unnest($2::bytea[], $3::bigint[], $4::text[], $5::bytea[], $6::uuid[]) AS g (digest, size, media_type, content, run_id)
		), stored AS (
			INSERT INTO stored_values (tenant_id, digest, size, media_type, content)
			SELECT $1, digest, size, media_type, content FROM given ON CONFLICT DO NOTHING)
		INSERT INTO run_values (tenant_id, digest, run_id)
		SELECT $1, digest, run_id FROM given ON CONFLICT DO NOTHING`,
		tenant, digests, sizes, mediaTypes, contents, runs)
	for _, row := range v.rows {
		row.queueChunks(b, tenant)
	}
}

// queueChunks stores a large value piece by piece.
func (r valueRow) queueChunks(b *tenants.Batch, tenant tenants.ID) {
	if len(r.content) <= chunkSize {
		return
	}
	number := 0
	for chunk := range slices.Chunk(r.content, chunkSize) {
		b.Queue(`
			INSERT INTO stored_value_chunks (tenant_id, digest, number, content)
			VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`, tenant, r.digest.bytes(), number, chunk)
		number++
	}
}
