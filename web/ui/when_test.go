package ui_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/web/ui"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	require.NoError(t, err)
	return loc
}

func moment(t *testing.T, s string) time.Time {
	t.Helper()
	m, err := time.Parse(time.RFC3339, s)
	require.NoError(t, err)
	return m
}

func TestWhen(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, at, now, zone, want string }{
		{"today", "2026-11-30T16:00:00Z", "2026-11-30T12:42:00Z", "Europe/Berlin", "Today 17:00 CET"},
		{"tomorrow by the zone's midnight", "2026-11-30T23:30:00Z", "2026-11-30T12:42:00Z", "Europe/Berlin", "Tomorrow 00:30 CET"},
		{"yesterday", "2026-11-29T08:15:00Z", "2026-11-30T12:42:00Z", "Europe/Berlin", "Yesterday 09:15 CET"},
		{"this year", "2026-11-27T13:50:00Z", "2026-11-30T12:42:00Z", "Europe/Berlin", "Fri 27 Nov 14:50 CET"},
		{"summer time of that day", "2026-07-01T12:00:00Z", "2026-11-30T12:42:00Z", "Europe/Berlin", "Wed 1 Jul 14:00 CEST"},
		{"another year", "2025-11-27T13:50:00Z", "2026-11-30T12:42:00Z", "Europe/Berlin", "Thu 27 Nov 2025 14:50 CET"},
		{"across a new year", "2027-01-01T08:00:00Z", "2026-12-31T12:00:00Z", "Europe/Berlin", "Tomorrow 09:00 CET"},
		{"a day of 23 hours", "2026-03-29T22:30:00Z", "2026-03-28T23:30:00Z", "Europe/Berlin", "Tomorrow 00:30 CEST"},
		{"a day of 25 hours", "2026-10-25T22:30:00Z", "2026-10-24T22:30:00Z", "Europe/Berlin", "Today 23:30 CET"},
		{"a zone without letters", "2026-11-30T12:00:00Z", "2026-11-30T12:42:00Z", "America/Sao_Paulo", "Today 09:00 UTC−03"},
		{"half an hour off", "2026-11-30T20:00:00Z", "2026-11-30T12:42:00Z", "Asia/Kolkata", "Tomorrow 01:30 IST"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, ui.When(moment(t, c.at), moment(t, c.now), zone(t, c.zone)))
		})
	}
	require.Equal(t, "–", ui.When(time.Time{}, moment(t, "2026-11-30T12:42:00Z"), time.UTC))
}

func TestZone(t *testing.T) {
	t.Parallel()
	now := moment(t, "2026-11-30T12:42:00Z")
	require.Equal(t, "Europe/Berlin (CET)", ui.Zone(now, zone(t, "Europe/Berlin")))
	require.Equal(t, "UTC", ui.Zone(now, time.UTC))
}

func TestAgoAndUntil(t *testing.T) {
	t.Parallel()
	now := moment(t, "2026-11-30T12:42:00Z")
	require.Equal(t, "2 s ago", ui.Ago(now.Add(-2*time.Second), now))
	require.Equal(t, "just now", ui.Ago(now, now))
	require.Equal(t, "just now", ui.Ago(now.Add(time.Hour), now), "clocks differ")
	require.Equal(t, "In 3 h 18 min", ui.Until(now.Add(3*time.Hour+18*time.Minute), now))
	require.Equal(t, "Overdue by 2 h", ui.Until(now.Add(-2*time.Hour), now))
}
