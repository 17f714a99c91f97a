package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/mail"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// The first run that a cap stops is told to whoever may decide about money, once; further
// ones of the month are not.
func TestTheFirstRunThatACapStopsIsToldOnceByMail(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.cap(0)
	h.work()
	id := h.publish(oneQuestion)
	first := h.start(id, `{"n": 1}`)
	h.awaitWait(first, engine.WaitCap)
	second := h.start(id, `{"n": 2}`)
	h.awaitWait(second, engine.WaitCap)
	told := func() (found []mail.Mail) {
		h.in(func(ctx context.Context, tx tenants.Tx) error {
			all, err := h.outbox.List(ctx, tx)
			for _, one := range all {
				if one.Kind == mail.KindSpendAlert {
					found = append(found, one)
				}
			}
			return err
		})
		return found
	}
	require.Eventually(t, func() bool { return len(told()) > 0 }, 30*time.Second, 20*time.Millisecond)
	require.Len(t, told(), 1, "one owner, one mail")
	require.Contains(t, told()[0].Subject, "The AI spend cap of the workspace has stopped a run")
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		left, err := ledger.TakeAlerts(ctx, tx)
		require.Empty(t, left)
		return err
	})
}
