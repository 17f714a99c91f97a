package ui

import (
	"strings"
	"time"
)

// When writes a moment for people, with its zone: "Today 17:00 CET",
// "Tomorrow 09:00 CET", "Fri 27 Nov 14:50 CET", with the year if it is another
// one. The zone is always that of loc; now only decides the words.
func When(t, now time.Time, loc *time.Location) string {
	if t.IsZero() {
		return "–"
	}
	return WhenBrief(t, now, loc) + " " + ZoneName(t, loc)
}

// WhenBrief is [When] without the zone, for tables whose page names the zone
// once.
func WhenBrief(t, now time.Time, loc *time.Location) string {
	if t.IsZero() {
		return "–"
	}
	return Day(t, now, loc) + " " + t.In(loc).Format("15:04")
}

// Day writes the day of a moment: "Today", "Yesterday", "Tomorrow",
// "Fri 27 Nov", "Fri 27 Nov 2025".
func Day(t, now time.Time, loc *time.Location) string {
	t, now = t.In(loc), now.In(loc)
	switch daysBetween(now, t) {
	case 0:
		return "Today"
	case -1:
		return "Yesterday"
	case 1:
		return "Tomorrow"
	}
	if t.Year() == now.Year() {
		return t.Format("Mon 2 Jan")
	}
	return t.Format("Mon 2 Jan 2006")
}

// daysBetween counts calendar days, which a day of 23 or 25 hours must not
// change; so it compares dates, not hours.
func daysBetween(from, to time.Time) int {
	day := func(t time.Time) time.Time {
		return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	}
	return int(day(to).Sub(day(from)) / (24 * time.Hour))
}

// ZoneName is the short name of the zone at a moment: "CET", "UTC+3" where a
// zone has no letters.
func ZoneName(t time.Time, loc *time.Location) string {
	name, _ := t.In(loc).Zone()
	if strings.HasPrefix(name, "+") || strings.HasPrefix(name, "-") {
		return "UTC" + strings.Replace(name, "-", "−", 1)
	}
	return name
}

// Zone is the zone as the foot of a page names it: "Europe/Berlin (CET)".
func Zone(now time.Time, loc *time.Location) string {
	short := ZoneName(now, loc)
	if loc.String() == short {
		return short
	}
	return loc.String() + " (" + short + ")"
}

// Ago writes how long something is past: "2 s ago", "just now" within a
// second and for what the clocks put into the future.
func Ago(t, now time.Time) string {
	if d := now.Sub(t); d >= time.Second {
		return Duration(d) + " ago"
	}
	return "just now"
}

// Until writes how long something is ahead: "In 3 h 18 min", or "Overdue by
// 2 h" once it is past.
func Until(t, now time.Time) string {
	if d := t.Sub(now); d > 0 {
		return "In " + Duration(d)
	}
	return "Overdue by " + Duration(now.Sub(t))
}
