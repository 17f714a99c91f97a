package ledger_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// staff are people of the tenant, one in each role that matters to money, and a second
// finance member.
type staff struct{ owner, finance, other, builder, viewer tenants.Membership }

func (b *books) staff(t testing.TB) staff {
	t.Helper()
	member := func(role tenants.Role) tenants.Membership {
		id := tenants.NewID[tenants.User]()
		_, err := b.Super(t).Exec(t.Context(), `INSERT INTO users (id, email, name) VALUES ($1, $2, $3)`, id, id.String()+"@example.com", string(role))
		require.NoError(t, err)
		_, err = b.Super(t).Exec(t.Context(), `INSERT INTO members (tenant_id, user_id, role) VALUES ($1, $2, $3)`, b.tenant, id, role)
		require.NoError(t, err)
		return tenants.Membership{Tenant: tenants.Tenant{ID: b.tenant}, User: tenants.User{ID: id, Name: string(role)}, Role: role}
	}
	return staff{member(tenants.Owner), member(tenants.Finance), member(tenants.Finance), member(tenants.Builder), member(tenants.Viewer)}
}

func (b *books) raise(limit *ledger.Micros) ledger.Change {
	return ledger.Change{Cap: &ledger.CapChange{Place: ledger.OfTenant(b.tenant), Funds: ledger.Real, Limit: limit}}
}

// try runs one change of money and returns its error.
func (b *books) try(t testing.TB, fn func(ctx context.Context, tx tenants.Tx) error) error {
	t.Helper()
	return b.InTx(t.Context(), b.tenant, fn)
}

func TestARaiseIsAskedAndGrantedOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	people := b.staff(t)
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, limit(100))
	var id, again ledger.RequestID
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		if id, err = ledger.Ask(ctx, tx, b.raise(limit(900)), "the letters came\x00 at once", "form", people.builder); err != nil {
			return err
		}
		again, err = ledger.Ask(ctx, tx, b.raise(limit(900)), "the letters came at once", "form", people.builder)
		return err
	})
	require.Equal(t, id, again, "one form is one request")
	require.Equal(t, ledger.Micros(100), *b.month(t).Real.Limit, "asking changes nothing")
	grant := func(by tenants.Membership, change ledger.Change) error {
		return b.try(t, func(ctx context.Context, tx tenants.Tx) error {
			_, err := ledger.Grant(ctx, tx, id, change, "fine", by)
			return err
		})
	}
	require.ErrorAs(t, grant(people.builder, b.raise(limit(900))), new(*tenants.Forbidden), "who asks does not grant")
	require.ErrorAs(t, grant(people.viewer, b.raise(limit(900))), new(*tenants.Forbidden))
	elsewhere := b.raise(limit(900))
	elsewhere.Cap.Place = ledger.OfPipeline(b.pipeline)
	require.ErrorIs(t, grant(people.finance, elsewhere), ledger.ErrBadCap, "another place than was asked for")
	require.NoError(t, grant(people.finance, b.raise(limit(500))), "less than was asked for is fine")
	require.Equal(t, ledger.Micros(500), *b.month(t).Real.Limit)
	require.ErrorIs(t, grant(people.owner, b.raise(limit(900))), ledger.ErrNotAsking)
	require.Equal(t, ledger.Micros(500), *b.month(t).Real.Limit)
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		request, err := ledger.RequestByID(ctx, tx, id)
		require.Equal(t, "the letters came at once", request.Reason)
		require.Equal(t, ledger.RequestGranted, request.State)
		open, openErr := ledger.OpenRequests(ctx, tx)
		require.NoError(t, openErr)
		require.Empty(t, open)
		history, historyErr := tenants.AuditOf(ctx, tx, ledger.OfTenant(b.tenant).Target(), tenants.AuditID{})
		require.NoError(t, historyErr)
		require.Equal(t, []string{"cap.set", "cap.asked"}, []string{history[0].Action, history[1].Action})
		return err
	})
	stranger := opened(t, b.Database)
	err := stranger.try(t, func(ctx context.Context, tx tenants.Tx) error {
		_, err := ledger.RequestByID(ctx, tx, id)
		return err
	})
	require.ErrorIs(t, err, ledger.ErrNoRequest)
}

func TestAboveTheSetAmountTwoPeopleAreNeeded(t *testing.T) {
	t.Parallel()
	b := open(t)
	people := b.staff(t)
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, limit(100))
	settle := func(s ledger.Settings, key string, by tenants.Membership) (out ledger.Outcome) {
		b.in(t, func(ctx context.Context, tx tenants.Tx) error {
			var err error
			out, err = ledger.Make(ctx, tx, ledger.Change{Settings: &s}, "", key, by)
			return err
		})
		return out
	}
	require.True(t, settle(ledger.Settings{SecondAbove: limit(1000)}, "s1", people.owner).Done)
	set := func(change ledger.Change, key string, by tenants.Membership) (out ledger.Outcome) {
		b.in(t, func(ctx context.Context, tx tenants.Tx) error {
			var err error
			out, err = ledger.Make(ctx, tx, change, "for spring", key, by)
			return err
		})
		return out
	}
	require.True(t, set(b.raise(limit(1000)), "k1", people.finance).Done, "up to the amount one is enough")
	out := set(b.raise(limit(1001)), "k2", people.finance)
	require.False(t, out.Done)
	require.Equal(t, ledger.Micros(1000), *b.month(t).Real.Limit)
	for _, dodge := range []ledger.Change{b.raise(nil), b.alertOnly(limit(5)), b.until(limit(5), limit(5000))} {
		require.False(t, set(dodge, tenants.NewID[int]().String(), people.finance).Done, "%+v lets more through", dodge.Cap)
	}
	require.False(t, settle(ledger.Settings{}, "s2", people.finance).Done, "nor can one alone drop the rule")
	require.False(t, settle(ledger.Settings{SecondAbove: limit(9999)}, "s3", people.finance).Done)

	grant := func(change ledger.Change, by tenants.Membership) error {
		return b.try(t, func(ctx context.Context, tx tenants.Tx) error {
			_, err := ledger.Grant(ctx, tx, out.Request, change, "", by)
			return err
		})
	}
	require.ErrorIs(t, grant(b.raise(limit(1001)), people.finance), ledger.ErrSamePerson)
	require.NoError(t, grant(b.raise(limit(900_000)), people.other))
	require.Equal(t, ledger.Micros(1001), *b.month(t).Real.Limit, "the second confirms what the first wrote")
	require.True(t, set(b.raise(limit(1001)), "k3", people.finance).Done, "what does not rise needs nobody")
	require.True(t, set(b.raise(limit(10)), "k4", people.finance).Done, "nor does lowering")
}

// A request of a builder above the amount: the first who grants it agrees, another confirms.
func TestAGrantAboveTheAmountWaitsForAnother(t *testing.T) {
	t.Parallel()
	b := open(t)
	people := b.staff(t)
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, limit(100))
	var id ledger.RequestID
	var first, second ledger.Outcome
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		_, err := ledger.Make(ctx, tx, ledger.Change{Settings: &ledger.Settings{SecondAbove: limit(100)}}, "", "s", people.owner)
		require.NoError(t, err)
		id, err = ledger.Ask(ctx, tx, b.raise(limit(900)), "", "form", people.builder)
		require.NoError(t, err)
		first, err = ledger.Grant(ctx, tx, id, b.raise(limit(800)), "", people.finance)
		require.NoError(t, err)
		_, err = ledger.Grant(ctx, tx, id, b.raise(limit(800)), "", people.finance)
		require.ErrorIs(t, err, ledger.ErrSamePerson)
		second, err = ledger.Grant(ctx, tx, id, b.raise(limit(900)), "", people.owner)
		return err
	})
	require.False(t, first.Done)
	require.True(t, second.Done)
	require.Equal(t, ledger.Micros(800), *b.month(t).Real.Limit)
}

func TestNobodyIsLockedOutOfTheRule(t *testing.T) {
	t.Parallel()
	b := open(t)
	people := b.staff(t)
	_, err := b.Super(t).Exec(t.Context(), `DELETE FROM members WHERE tenant_id = $1 AND user_id <> $2`, b.tenant, people.owner.User.ID)
	require.NoError(t, err)
	b.setCap(t, ledger.OfTenant(b.tenant), ledger.Real, limit(1))
	err = b.try(t, func(ctx context.Context, tx tenants.Tx) error {
		out, err := ledger.Make(ctx, tx, ledger.Change{Settings: &ledger.Settings{SecondAbove: limit(5)}}, "", "s", people.owner)
		require.True(t, out.Done)
		require.NoError(t, err)
		_, err = ledger.Make(ctx, tx, b.raise(limit(6)), "", "k", people.owner)
		return err
	})
	require.ErrorIs(t, err, ledger.ErrNoSecond)
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		out, err := ledger.Make(ctx, tx, ledger.Change{Settings: &ledger.Settings{}}, "", "s2", people.owner)
		require.True(t, out.Done, "who is alone may drop it")
		return err
	})
}

func TestARequestIsDeclinedOrWithdrawnOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	people := b.staff(t)
	ask := func() (id ledger.RequestID) {
		b.in(t, func(ctx context.Context, tx tenants.Tx) error {
			var err error
			id, err = ledger.Ask(ctx, tx, b.raise(limit(900)), strings.Repeat("ä", 9999), tenants.NewID[int]().String(), people.builder)
			return err
		})
		return id
	}
	decline := func(id ledger.RequestID, by tenants.Membership) error {
		return b.try(t, func(ctx context.Context, tx tenants.Tx) error { return ledger.Decline(ctx, tx, id, "no", by) })
	}
	id := ask()
	require.ErrorAs(t, decline(id, people.viewer), new(*tenants.Forbidden))
	require.NoError(t, decline(id, people.finance))
	require.ErrorIs(t, decline(id, people.builder), ledger.ErrNotAsking)
	id = ask()
	require.NoError(t, decline(id, people.builder), "whoever asked takes it back")
	b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		request, err := ledger.RequestByID(ctx, tx, id)
		require.Equal(t, ledger.RequestWithdrawn, request.State)
		require.LessOrEqual(t, len([]rune(request.Reason)), ledger.MaxReason)
		return err
	})
}

func (b *books) alertOnly(limit *ledger.Micros) ledger.Change {
	change := b.raise(limit)
	change.Cap.AlertOnly = true
	return change
}

func (b *books) until(limit, after *ledger.Micros) ledger.Change {
	change := b.raise(limit)
	change.Cap.Until, change.Cap.After = time.Now().Add(time.Hour), after
	return change
}
