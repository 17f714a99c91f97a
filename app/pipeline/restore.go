package pipeline

import (
	"context"
	"fmt"

	"tollgate/tenants"
)

// Restore publishes an earlier version anew, as the next number and the live one, so that
// the history stays. A draft that differs from the live version is left alone; one that
// does not becomes the restored version, which can be undone.
func Restore(ctx context.Context, tx tenants.Tx, id ID, number int, note string, by tenants.UserID) (int, error) {
	one, err := Lock(ctx, tx, id)
	if err != nil {
		return 0, err
	}
	wanted, err := VersionByNumber(ctx, tx, id, number)
	if err != nil {
		return 0, err
	}
	live, err := VersionByNumber(ctx, tx, id, one.Live)
	if err != nil {
		return 0, err
	}
	var last int
	err = tx.QueryRow(ctx, `SELECT max(number) FROM pipeline_versions WHERE tenant_id = $1 AND pipeline_id = $2`, tx.Tenant, id).Scan(&last)
	if err != nil {
		return 0, fmt.Errorf("count versions: %w", err)
	}
	if one.Unread == nil && len(Changes(live.Document, one.Draft)) == 0 {
		edit := Edit{Key: tenants.NewID[Edit]().String(), By: by, Change: func(Document) (Document, string, string, error) {
			return wanted.Document, fmt.Sprintf("Went back to v%d", number), "", nil
		}}
		if _, err := EditDraft(ctx, tx, id, edit); err != nil {
			return 0, err
		}
	}
	return last + 1, insertVersion(ctx, tx, id, last+1, wanted.Document, note, by)
}
