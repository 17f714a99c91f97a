package engine

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A date from data means the workspace's clock: of a time that comes twice the first, of
// one that is skipped the first moment after the gap.
func TestWaitUntilMeansTheWorkspacesClock(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ zone, text, want string }{
		{"Europe/Berlin", "2026-11-30", "2026-11-29T23:00:00Z"},
		{"Europe/Berlin", "2026-11-30T09:00", "2026-11-30T08:00:00Z"},
		{"Europe/Berlin", "2026-11-30 09:00:30", "2026-11-30T08:00:30Z"},
		{"Europe/Berlin", "2026-07-30T09:00", "2026-07-30T07:00:00Z"},
		{"Europe/Berlin", "2026-11-30T09:00:00-05:00", "2026-11-30T14:00:00Z"},
		{"Europe/Berlin", "2027-03-28T02:30", "2027-03-28T01:00:00Z"},       // skipped: 03:00 summer time
		{"Europe/Berlin", "2027-03-28T02:00", "2027-03-28T01:00:00Z"},       // its first skipped minute
		{"Europe/Berlin", "2027-03-28T01:59", "2027-03-28T00:59:00Z"},       // the last before it
		{"Europe/Berlin", "2026-10-25T02:30", "2026-10-25T00:30:00Z"},       // twice: in summer time
		{"Europe/Berlin", "2026-10-25T03:00", "2026-10-25T02:00:00Z"},       // once again
		{"America/New_York", "2026-11-01T01:30", "2026-11-01T05:30:00Z"},    // twice
		{"America/New_York", "2027-03-14T02:30", "2027-03-14T07:00:00Z"},    // skipped
		{"Australia/Lord_Howe", "2026-10-04T02:15", "2026-10-03T15:30:00Z"}, // half an hour is skipped
		{"Australia/Lord_Howe", "2027-04-04T01:45", "2027-04-03T14:45:00Z"}, // half an hour comes twice
		{"Africa/Cairo", "2026-04-24", "2026-04-23T22:00:00Z"},              // a day without its midnight
		{"Pacific/Apia", "2011-12-30", "2011-12-30T10:00:00Z"},              // a day that was left out
		{"Pacific/Auckland", "2026-09-14", "2026-09-13T12:00:00Z"},
		{"UTC", "2028-02-29", "2028-02-29T00:00:00Z"},
	} {
		zone, err := time.LoadLocation(test.zone)
		require.NoError(t, err)
		want, err := time.Parse(time.RFC3339, test.want)
		require.NoError(t, err)
		got, failure := waitTerms{until: test.text, zone: zone}.ends(Run{CreatedAt: want.AddDate(0, -1, 0)}, want)
		require.Nil(t, failure, test.text)
		require.Equal(t, test.want, got.Format(time.RFC3339), "%s in %s", test.text, test.zone)
	}
}

// Every local minute of two years is met by a moment that shows it, or follows a gap.
func TestEveryLocalTimeHasItsMoment(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Kathmandu", "America/St_Johns", "Africa/Casablanca"} {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		last := time.Time{}
		for wall := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC); wall.Year() < 2028; wall = wall.Add(15 * time.Minute) {
			moment := resolve(wall, zone)
			if !sameClock(moment.In(zone), wall) {
				change, _ := moment.In(zone).ZoneBounds()
				require.Equal(t, change.UTC(), moment.UTC(), "%s in %s is skipped", wall, name)
				require.True(t, moment.In(zone).Format(time.DateTime) > wall.Format(time.DateTime))
			}
			require.False(t, moment.Before(last), "%s in %s: later on the clock is not earlier", wall, name)
			last = moment
		}
	}
}

func TestWaitsThatCannotBeAreRefusedInWords(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 8, 31, 12, 0, 0, 0, time.UTC)
	run := Run{CreatedAt: now.AddDate(-2, 0, 0)}
	for name, test := range map[string]struct {
		terms waitTerms
		says  string
	}{
		"a date beyond the run's life": {waitTerms{until: "2031-05-01"}, "until 1 May 2031. A run can stay open for 3 years, this one until 3 September 2027"},
		"a span beyond the run's life": {waitTerms{span: 400 * 24 * time.Hour}, "until 5 October 2027"},
		"a day that does not exist":    {waitTerms{until: "2026-02-30"}, `is "2026-02-30", which is not a date`},
		"no date":                      {waitTerms{until: "tomorrow"}, `is "tomorrow", which is not a date`},
		"a number":                     {waitTerms{until: json.Number("20261130")}, "is 20261130, which is not a date"},
		"nothing":                      {waitTerms{}, "is empty"},
		"an empty text":                {waitTerms{until: ""}, "is empty"},
	} {
		test.terms.zone = time.UTC
		_, failure := test.terms.ends(run, now)
		require.NotNil(t, failure, name)
		require.Contains(t, failure.Message, test.says, name)
	}
	past, failure := waitTerms{until: "2020-01-01", zone: time.UTC}.ends(run, now)
	require.Nil(t, failure, "what has passed is over at once")
	require.True(t, past.Before(now))
	end, failure := waitTerms{span: 400 * 24 * time.Hour, zone: time.UTC}.ends(Run{CreatedAt: now}, now)
	require.Nil(t, failure)
	require.Equal(t, now.AddDate(0, 0, 400), end)
}
