package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakeerp"
	"tollgate/app/engine"
	"tollgate/app/review"
	"tollgate/tenants"
)

// Another system that ignores idempotency keys has taken an order and not answered yet when
// the working process is killed: each policy does what it says, and under "ask" nothing is
// posted twice without a person's word.
func TestKillOfAWorkerWithAnOrderInFlight(t *testing.T) {
	t.Parallel()
	policies := []struct {
		name, more string
		orders     int // at the other side, in the end
	}{
		{"ask", ``, 1},
		{"look up", `, "if_unsure": "look_up", "look_up": {"url": "ERP/orders/run-{{ input.n }}", "arrived": "answer.status == 200"}`, 1},
		{"repeat", `, "if_unsure": "repeat"`, 2},
	}
	systems := make([]*fakeerp.Server, len(policies))
	addresses := make([]string, len(policies))
	f := onSharedServer(t)
	for i := range policies {
		systems[i], addresses[i] = fakeerp.Start(t, fakeerp.Hangs)
		u, err := url.Parse(addresses[i])
		require.NoError(t, err)
		f.env[len(f.env)-1] += "," + u.Host // TOLLGATE_OUTBOUND_ALLOW
	}
	first := f.work()
	runs := make([]engine.RunID, len(policies))
	for i, policy := range policies {
		runs[i] = f.startOrder(addresses[i], policy.more)
		<-systems[i].Taken
	}
	first.Kill()
	f.work()
	f.saysItArrived(runs[0])
	for i, policy := range policies {
		p := f.awaitEnded(runs[i])
		require.Equal(t, engine.RunCompleted, p.Run.State, "%s: %+v", policy.name, p.Run.Failure)
		orders, _ := systems[i].Orders()
		require.Len(t, orders, policy.orders, policy.name)
		for _, order := range orders {
			require.Equal(t, p.Steps[0].ID.String(), order.Key, "each try carries the same key")
		}
	}
}

// startOrder publishes a pipeline that posts an order, and starts a run of it.
func (f *fleet) startOrder(address, more string) engine.RunID {
	f.t.Helper()
	id := f.publish(fmt.Sprintf(`{"semantics": 3, "name": "Order", "input": [{"name": "n", "type": "number", "required": true}], "steps": [
		{"id": "post", "name": "Post the order", "kind": "http", "timeout": "5m", "with": {"method": "POST", "url": "%s/orders", "body": "{\"ref\": \"run-\" + text(input.n)}" %s}}]}`,
		address, strings.ReplaceAll(more, "ERP", address)))
	f.start(id, `{"n": 1}`, address)
	var run engine.RunID
	f.in(func(ctx context.Context, tx tenants.Tx) error {
		return tx.QueryRow(ctx, `SELECT id FROM runs WHERE start_key = $1`, address).Scan(&run)
	})
	return run
}

// saysItArrived waits until the run asks, and answers as the workspace's owner.
func (f *fleet) saysItArrived(run engine.RunID) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		p := f.progress(run)
		if len(p.Steps) == 0 || p.Steps[0].State != engine.StepWaiting {
			return false
		}
		return f.rooms.db.InTx(context.Background(), f.tenant, func(ctx context.Context, tx tenants.Tx) error {
			detail, err := f.rooms.reviews.ByStepRun(ctx, tx, p.Steps[0].ID)
			if err != nil {
				return err
			}
			seat := detail.Seats[0]
			_, err = f.rooms.engine.DecideReview(ctx, tx, review.Decision{
				Seat: seat.ID, Viewer: review.Viewer{User: f.owner}, Digest: detail.Digest, Verdict: review.Approve,
				Edits: map[string]json.RawMessage{"arrived": json.RawMessage(`"arrived"`)},
			})
			return err
		}) == nil
	}, 60*time.Second, 100*time.Millisecond, "the run asks whether the order arrived")
}

func (f *fleet) progress(run engine.RunID) (p engine.Progress) {
	f.t.Helper()
	f.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		p, err = engine.ProgressOf(ctx, tx, run)
		return err
	})
	return p
}

func (f *fleet) awaitEnded(run engine.RunID) (p engine.Progress) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		p = f.progress(run)
		return p.Run.State.Final()
	}, 60*time.Second, 100*time.Millisecond, "the run's end")
	return p
}
