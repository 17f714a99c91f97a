package jobs

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/mail"
	"tollgate/billing/ledger"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// Where several shares of a cap are passed at once, people get one mail, about the
// greatest; what is likely and what was stopped are told besides.
func TestTheLoudestAlertOfACapIsTold(t *testing.T) {
	t.Parallel()
	place, other := ledger.OfTenant(tenants.NewID[tenants.Tenant]()), ledger.OfCostCentre("4410")
	at := func(place ledger.Place, funds ledger.Funds, kind ledger.AlertKind) ledger.Alert {
		return ledger.Alert{Place: place, Funds: funds, Kind: kind}
	}
	got := loudest([]ledger.Alert{
		at(place, ledger.Real, ledger.AlertHalf), at(place, ledger.Real, ledger.AlertMost), at(place, ledger.Real, ledger.AlertAll),
		at(place, ledger.Real, ledger.AlertStopped), at(place, ledger.Real, ledger.AlertOnCourse),
		at(place, ledger.Pretend, ledger.AlertHalf), at(other, ledger.Real, ledger.AlertMost),
	})
	require.Equal(t, []ledger.Alert{
		at(place, ledger.Real, ledger.AlertAll), at(place, ledger.Real, ledger.AlertStopped), at(place, ledger.Real, ledger.AlertOnCourse),
		at(place, ledger.Pretend, ledger.AlertHalf), at(other, ledger.Real, ledger.AlertMost),
	}, got)
}

// Each alert is mailed once to those who may decide about money, however often and
// wherever the tick runs.
func TestAlertsAreMailedOnce(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	tenant, _ := db.Tenant(t)
	inserter, err := NewInserter(db.DB)
	require.NoError(t, err)
	secret, err := tenants.NewSecret(make([]byte, 32))
	require.NoError(t, err)
	outbox, err := mail.New(mail.Config{Sender: mail.Mailbox{}, Inserter: inserter, From: mail.Address{Email: "tollgate@example.com"},
		Links: mail.Links{Secret: secret, BaseURL: "http://tollgate.example"}})
	require.NoError(t, err)
	month := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for _, kind := range []ledger.AlertKind{ledger.AlertHalf, ledger.AlertMost} {
		_, err := db.Super(t).Exec(t.Context(), `INSERT INTO cap_alerts (tenant_id, scope, scope_id, funds, period_start, kind, limit_micros, spent_micros)
			VALUES ($1, 'tenant', $1::uuid::text, 'real', $2, $3, 100000000, 81000000)`, tenant, month, kind)
		require.NoError(t, err)
	}
	for n, want := range []int{2, 0, 0} {
		told, err := tellAlerts(t.Context(), db.DB, outbox)
		require.NoError(t, err)
		require.Equal(t, want, told, "look %d", n)
	}
	require.NoError(t, db.InTx(t.Context(), tenant, func(ctx context.Context, tx tenants.Tx) error {
		mails, err := outbox.List(ctx, tx)
		require.Len(t, mails, 1)
		require.Equal(t, "80 % of the AI spend cap of the workspace is spent", mails[0].Subject)
		return err
	}))
}
