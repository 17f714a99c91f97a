package review_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/review"
	"tollgate/tenants"
)

func addresses(d review.Detail) []string {
	var out []string
	for _, seat := range d.Seats {
		out = append(out, seat.Address)
	}
	return out
}

func TestOpenMakesOneSeatAndOneMailForEachPerson(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q := b.question()
	// Ben three times: by id, by his address, in a list with capitals.
	q.People = append(q.People, review.Person{Email: "BEN@example.com"}, review.Person{Email: "Ben <ben@EXAMPLE.com>, lee@outside.example"})
	d := b.detail(t, b.open(t, q))
	require.Equal(t, []string{"ben@example.com", "chi@example.com", "kim@outside.example", "lee@outside.example"}, addresses(d))
	require.Equal(t, b.ben, d.Seats[0].User)
	require.True(t, d.Seats[2].User.IsZero())
	require.Equal(t, "Kim Lee", d.Seats[2].Name)
	require.Equal(t, "Europe/Berlin", d.Seats[0].Zone)
	require.Equal(t, "UTC", d.Seats[2].Zone, "outsiders read the workspace's clock")

	require.Len(t, b.outbox.invited, 4)
	for i, invitation := range b.outbox.invited {
		require.Equal(t, d.Seats[i].ID, invitation.Seat)
		require.Equal(t, "Olga Owner", invitation.Requester)
		require.Equal(t, 4, invitation.Asked)
		require.Equal(t, 1, invitation.Needed)
	}
	require.Equal(t, "Reviewers", b.outbox.invited[0].Why)
}

func TestOpenWritesNothingWhenAMailCannotBeQueued(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.outbox.fail = errors.New("full")
	_, err := b.tryOpen(t, b.question())
	require.ErrorContains(t, err, "full")
	require.Empty(t, b.everything(t))
}

func TestRequesterIsNotAsked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var email string
	require.NoError(t, b.db.Super(t).QueryRow(t.Context(), `SELECT email FROM users WHERE id = $1`, b.owner).Scan(&email))
	for name, people := range map[string][]review.Person{
		"by id": {{User: b.owner}}, "by address": {{Email: strings.ToUpper(email)}}, "both": {{User: b.owner}, {Email: email}}, "nobody": nil,
	} {
		q := b.question()
		q.People = people
		_, err := b.tryOpen(t, q)
		require.ErrorIs(t, err, review.ErrNobodyToAsk, name)

		q.People = append(q.People, review.Person{User: b.ben})
		q.StepRunID = tenants.NewID[string]()
		require.Equal(t, []string{"ben@example.com"}, addresses(b.detail(t, b.open(t, q))), name)
	}
	q := b.question()
	q.People, q.AllowRequester = []review.Person{{User: b.owner}}, true
	require.Equal(t, []string{email}, addresses(b.detail(t, b.open(t, q))))
}

func TestOpenNeverLetsTooFewPass(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `DELETE FROM members WHERE user_id = $1`, b.chi)
	tests := map[string]struct {
		people []review.Person
		policy review.Policy
		want   error
	}{
		"removed member only":      {[]review.Person{{User: b.chi}}, review.Policy{}, review.ErrNobodyToAsk},
		"member of another":        {[]review.Person{{User: b.otherTenantBy}}, review.Policy{}, review.ErrNobodyToAsk},
		"all of nobody":            {nil, review.Policy{Rule: review.RuleAll}, review.ErrNobodyToAsk},
		"two of one":               {[]review.Person{{User: b.ben}, {User: b.chi}}, review.Policy{Rule: review.RuleN, N: 2}, review.ErrNobodyToAsk},
		"two of one and starter":   {[]review.Person{{User: b.ben}, {User: b.owner}}, review.Policy{Rule: review.RuleN, N: 2}, review.ErrNobodyToAsk},
		"one of one":               {[]review.Person{{User: b.ben}}, review.Policy{Rule: review.RuleN, N: 1}, nil},
		"removed by her address":   {[]review.Person{{Email: "chi@example.com"}}, review.Policy{}, nil},
		"none of one is no policy": {[]review.Person{{User: b.ben}}, review.Policy{Rule: review.RuleN, N: 0}, review.ErrBadQuestion},
		"unknown rule":             {[]review.Person{{User: b.ben}}, review.Policy{Rule: "most"}, review.ErrBadQuestion},
	}
	for name, test := range tests {
		q := b.question()
		q.People, q.Policy, q.StepRunID = test.people, test.policy, tenants.NewID[string]()
		_, err := b.tryOpen(t, q)
		require.ErrorIs(t, err, test.want, name)
	}
}

func TestOpenRefusesWhatCannotBeAsked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	many := make([]review.Person, 201)
	for i := range many {
		many[i] = review.Person{User: tenants.NewID[tenants.User]()}
	}
	tests := map[string]func(*review.Question){
		"no title":   func(q *review.Question) { q.Title = " \n" },
		"no address": func(q *review.Question) { q.People = []review.Person{{Email: "kim"}} },
		"address with break": func(q *review.Question) {
			q.People = []review.Person{{Email: "kim@outside.example\r\nBcc: x@y.example"}}
		},
		"many people":           func(q *review.Question) { q.People = many },
		"too much to read":      func(q *review.Question) { q.Proposal.Text = strings.Repeat("x", 1<<20) },
		"many facts":            func(q *review.Question) { q.Facts = make([]review.Fact, 101) },
		"outsider must sign in": func(q *review.Question) { q.Proof = review.ProofSignIn },
		"unknown proof":         func(q *review.Question) { q.Proof = "fingerprint" },
		"field of no type":      func(q *review.Question) { q.Editable = []review.EditableField{{Name: "a", Type: "file"}} },
		"field twice": func(q *review.Question) {
			q.Editable = []review.EditableField{{Name: "a", Type: "text"}, {Name: "a", Type: "text"}}
		},
		"broken value": func(q *review.Question) {
			q.Editable = []review.EditableField{{Name: "a", Type: "text", Value: raw(`{`)}}
		},
	}
	for name, change := range tests {
		q := b.question()
		change(&q)
		_, err := b.tryOpen(t, q)
		require.ErrorIs(t, err, review.ErrBadQuestion, name)
	}
	require.Empty(t, b.everything(t))
}

func TestHostileTextIsKeptAsText(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q := b.question()
	q.Title = "<b>Pay</b>\r\nnow\x00\xff"
	q.Body = "a\r\nb\x00\x1b[31m\xff \u202E"
	q.Facts = []review.Fact{{Label: "\x00", Value: "\xff"}}
	d := b.detail(t, b.open(t, q))
	require.Equal(t, "<b>Pay</b> now\uFFFD\uFFFD", d.Content.Title)
	require.Equal(t, "a\nb\uFFFD[31m\uFFFD \u202E", d.Content.Body)
}

func TestLongTitleIsCutWhereOneCanSeeIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q := b.question()
	q.Title = strings.Repeat("é", 301)
	require.Equal(t, strings.Repeat("é", 299)+"…", b.detail(t, b.open(t, q)).Content.Title)
}

func TestNumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q := b.question()
	q.Editable = []review.EditableField{{Name: "n", Type: review.FieldNumber, Value: raw("123456789012345678901234567890.10")}}
	d := b.detail(t, b.open(t, q))
	require.Equal(t, "123456789012345678901234567890.10", string(d.Content.Editable[0].Value))
}

func TestContentCannotChangeUnderItsDigest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.open(t, b.question())
	_, err := b.db.Super(t).Exec(t.Context(), `UPDATE reviews SET content = replace(content, '420', '999')`)
	require.ErrorContains(t, err, "check constraint")
	err = b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE reviews SET digest = digest WHERE id = $1`, id)
		return err
	})
	require.ErrorContains(t, err, "permission denied")
}

func TestStepRunAsksOneRoundAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.open(t, b.question())
	q := b.question()
	q.Round = 2
	_, err := b.tryOpen(t, q)
	key, duplicate := tenants.IsDuplicate(err)
	require.True(t, duplicate)
	require.Equal(t, "reviews_open", key)

	_, err = b.decide(t, b.byLink(t, id, "ben@example.com", review.SendBack))
	require.NoError(t, err)
	second := b.open(t, q)
	require.NotEqual(t, b.detail(t, id).Digest, b.detail(t, second).Digest)
	require.NoError(t, b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		d, err := b.room.ByStepRun(ctx, tx, b.stepRun)
		require.Equal(t, second, d.ID)
		return err
	}))
}

func TestLinkLivesAWhile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, test := range map[string]struct {
		due  time.Duration
		want time.Duration
	}{
		"no deadline": {0, 30 * 24 * time.Hour}, "soon": {time.Hour, 7*24*time.Hour + time.Hour}, "far": {100 * 24 * time.Hour, 30 * 24 * time.Hour},
	} {
		q := b.question()
		q.StepRunID = tenants.NewID[string]()
		if test.due != 0 {
			due := time.Now().Add(test.due)
			q.Due = &due
		}
		for _, seat := range b.detail(t, b.open(t, q)).Seats {
			require.WithinDuration(t, time.Now().Add(test.want), seat.ExpiresAt, 5*time.Minute, name)
		}
	}
}
