package tenants_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

const anywhere = "192.0.2.7:4711"

// door is sign-in as a test sees it, at a clock of the test's own.
type door struct {
	t      *testing.T
	db     *dbtest.Database
	secret tenants.Secret
	now    time.Time
}

func openDoor(t *testing.T) *door {
	return &door{t, dbtest.Open(t), testSecret(t, 7), time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)}
}

func (d *door) request(email, remote string) (tenants.LoginCode, error) {
	var code tenants.LoginCode
	err := d.db.InSystemTx(d.t.Context(), func(ctx context.Context, stx tenants.SystemTx) error {
		stx.Now = d.now
		var err error
		code, err = tenants.RequestCode(ctx, stx, email, remote)
		return err
	})
	return code, err
}

// digits asks for a code and returns what the mail would say.
func (d *door) digits(email string) string {
	d.t.Helper()
	code, err := d.request(email, anywhere)
	require.NoError(d.t, err)
	return tenants.LoginDigits(d.secret, code.ID)
}

func (d *door) verify(email, digits string) tenants.SignIn {
	d.t.Helper()
	var outcome tenants.SignIn
	err := d.db.InSystemTx(d.t.Context(), func(ctx context.Context, stx tenants.SystemTx) error {
		stx.Now = d.now
		var err error
		outcome, err = tenants.VerifyCode(ctx, stx, d.secret, email, digits)
		return err
	})
	require.NoError(d.t, err)
	return outcome
}

// wrong is a code that is not the given one.
func wrong(digits string) string {
	if digits[0] == '9' {
		return "0" + digits[1:]
	}
	return "9" + digits[1:]
}

func TestSignInMakesTheUserOnce(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	outcome := d.verify("ana.berger+x@example.com", d.digits(" Ana.Berger+x@Example.com "))
	require.NoError(t, outcome.Refused)
	require.True(t, outcome.First)
	require.Equal(t, "ana.berger+x@example.com", outcome.User.Email)
	require.Equal(t, "Ana Berger", outcome.User.Name)

	inSystem(t, d.db, func(ctx context.Context, stx tenants.SystemTx) {
		require.NoError(t, tenants.RenameUser(ctx, stx, outcome.User.ID, "Ana B."))
	})
	again := d.verify("ANA.BERGER+X@example.com", d.digits("ana.berger+x@example.com"))
	require.NoError(t, again.Refused)
	require.False(t, again.First)
	require.Equal(t, outcome.User.ID, again.User.ID)
	require.Equal(t, "Ana B.", again.User.Name, "a name she chose stays")

	tagless := d.verify("ana.berger@example.com", d.digits("ana.berger@example.com"))
	require.NotEqual(t, outcome.User.ID, tagless.User.ID, "another address is another person")
}

func TestCodesAreSixDigitsOfTheirSecret(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for range 2000 {
		id := tenants.NewID[tenants.LoginCode]()
		digits := tenants.LoginDigits(testSecret(t, 1), id)
		require.Regexp(t, `^\d{6}$`, digits)
		require.Equal(t, digits, tenants.LoginDigits(testSecret(t, 1), id))
		seen[digits]++
		seen[tenants.LoginDigits(testSecret(t, 2), id)]++
	}
	require.Greater(t, len(seen), 3900, "codes spread over all of a million")
}

func TestCodeIsTakenAsTheMailShowsIt(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	for i, shape := range []string{"%s %s", " %s-%s\n", "%s\u00a0%s"} {
		email := fmt.Sprintf("ana%d@example.com", i)
		digits := d.digits(email)
		require.NoError(t, d.verify(email, fmt.Sprintf(shape, digits[:3], digits[3:])).Refused)
	}
}

func TestMalformedCodesCostNoTry(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	digits := d.digits("ana@example.com")
	for _, text := range []string{"", "12345", "1234567", "12345x", "\x00\x00\x00\x00\x00\x00", "\uff11\uff12\uff13\uff14\uff15\uff16", strings.Repeat("1", 1<<20), "' OR 1=1"} {
		require.ErrorIs(t, d.verify("ana@example.com", text).Refused, tenants.ErrBadCode)
		require.ErrorIs(t, d.verify(text, digits).Refused, tenants.ErrBadCode)
	}
	require.NoError(t, d.verify("ana@example.com", digits).Refused)
}

func TestCodeWorksOnce(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	digits := d.digits("ana@example.com")
	require.NoError(t, d.verify("ana@example.com", digits).Refused)
	require.ErrorIs(t, d.verify("ana@example.com", digits).Refused, tenants.ErrBadCode)
}

func TestCodeIsBoundToItsAddress(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	digits := d.digits("ana@example.com")
	d.digits("ben@example.com")
	for _, other := range []string{"ben@example.com", "nobody@example.com", "ana+x@example.com"} {
		outcome := d.verify(other, digits)
		require.ErrorIs(t, outcome.Refused, tenants.ErrBadCode)
		require.True(t, outcome.User.ID.IsZero())
	}
	require.NoError(t, d.verify("ana@example.com", digits).Refused)
}

func TestOnlyTheNewestCodeCounts(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	older := d.digits("ana@example.com")
	newer := d.digits("ana@example.com") // at the same instant
	require.ErrorIs(t, d.verify("ana@example.com", older).Refused, tenants.ErrBadCode)
	require.NoError(t, d.verify("ana@example.com", newer).Refused)
	require.ErrorIs(t, d.verify("ana@example.com", older).Refused, tenants.ErrBadCode, "a used code does not revive the one before")
}

func TestCodeExpiresToTheSecond(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	start := d.now
	late, inTime := d.digits("late@example.com"), d.digits("ana@example.com")
	d.now = start.Add(tenants.CodeLifetime)
	require.ErrorIs(t, d.verify("late@example.com", late).Refused, tenants.ErrBadCode)
	d.now = start.Add(tenants.CodeLifetime - time.Second)
	require.NoError(t, d.verify("ana@example.com", inTime).Refused)
}

func TestFiveTriesACode(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	digits := d.digits("ana@example.com")
	for range tenants.CodeTries {
		require.ErrorIs(t, d.verify("ana@example.com", wrong(digits)).Refused, tenants.ErrBadCode)
	}
	outcome := d.verify("ana@example.com", digits)
	require.ErrorIs(t, outcome.Refused, tenants.ErrTooManyTries)
	require.True(t, outcome.User.ID.IsZero())
	var spent *tenants.TooManyTries
	require.ErrorAs(t, outcome.Refused, &spent)
	require.Zero(t, spent.Wait, "she may ask for the next one at once")

	digits = d.digits("ana@example.com")
	for range tenants.CodeTries - 1 {
		require.ErrorIs(t, d.verify("ana@example.com", wrong(digits)).Refused, tenants.ErrBadCode)
	}
	require.NoError(t, d.verify("ana@example.com", digits).Refused, "the fifth try may be the right one")
}

func TestFiftyAtOnceWithTheRightCodeGiveOneSignIn(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	digits := d.digits("ana@example.com")
	outcomes := d.verifyAtOnce(50, "ana@example.com", digits)
	won := 0
	for _, outcome := range outcomes {
		if outcome.Refused == nil {
			won++
			require.True(t, outcome.First)
			continue
		}
		require.ErrorIs(t, outcome.Refused, tenants.ErrBadCode)
	}
	require.Equal(t, 1, won)
}

func TestFiftyAtOnceGuessFiveTimes(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	digits := d.digits("ana@example.com")
	guesses := 0
	for _, outcome := range d.verifyAtOnce(50, "ana@example.com", wrong(digits)) {
		if errors.Is(outcome.Refused, tenants.ErrBadCode) {
			guesses++
			continue
		}
		require.ErrorIs(t, outcome.Refused, tenants.ErrTooManyTries)
	}
	require.Equal(t, tenants.CodeTries, guesses)
}

func (d *door) verifyAtOnce(n int, email, digits string) []tenants.SignIn {
	outcomes := make([]tenants.SignIn, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { outcomes[i] = d.verify(email, digits) })
	}
	all.Wait()
	return outcomes
}

func TestRequestRefusesWhatIsNoAddress(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	var invalid *tenants.Invalid
	_, err := d.request("nobody", anywhere)
	require.ErrorAs(t, err, &invalid)
}

// Known or not, an address gets the same kind of answer and leaves the same row.
func TestRequestTellsNothingOfKnownAddresses(t *testing.T) {
	t.Parallel()
	d := openDoor(t)
	d.verify("known@example.com", d.digits("known@example.com"))
	known, err := d.request("known@example.com", anywhere)
	require.NoError(t, err)
	unknown, err := d.request("unknown@example.com", anywhere)
	require.NoError(t, err)
	require.Equal(t, known.Expires, unknown.Expires)
	inSystem(t, d.db, func(ctx context.Context, stx tenants.SystemTx) {
		var users int
		require.NoError(t, stx.QueryRow(ctx, `SELECT count(*) FROM users`).Scan(&users))
		require.Equal(t, 1, users, "asking makes no user")
	})
}
