package gallery

import (
	"strings"
	"time"

	"tollgate/web/ui"
)

// Content that has broken pages before.
var (
	longName  = strings.Repeat("Schadensregulierungsbearbeitung Storm Ylva ", 7)[:300]
	longWord  = strings.Repeat("Donaudampfschifffahrtsgesellschaft", 9)[:300]
	arabic    = "عبد الرحمن القحطاني"
	override  = "invoice\u202Efdp.exe"
	emoji     = "👩🏽‍⚖️ Vertragsprüfung 🧾"
	script    = `<script>alert("x")</script><b onmouseover=alert(1)>`
	broken    = "half a \xff\xfe character, a NUL \x00 and a bell \x07"
	badScheme = "javascript:alert(1)"
)

var berlin = mustZone("Europe/Berlin")

func mustZone(name string) *time.Location {
	loc, err := time.LoadLocation(name)
	if err != nil {
		panic("gallery: load zone " + name + ": " + err.Error())
	}
	return loc
}

// now is the moment all pages of the gallery show.
var now = at("30 Nov 2026 13:42:00")

func at(s string) time.Time {
	t, err := time.ParseInLocation("2 Jan 2006 15:04:05", s, berlin)
	if err != nil {
		panic("gallery: " + err.Error())
	}
	return t
}

func layout(title, here string) ui.Layout {
	item := func(text string, icon ui.Icon, count int) ui.NavItem {
		return ui.NavItem{Text: text, Href: "#" + strings.ToLower(text), Icon: icon, Here: text == here, Count: count, Counted: "waiting for you"}
	}
	return ui.Layout{
		Title: title, Workspace: "Nordlicht Schaden", Switch: "#workspaces", Home: "#home",
		Nav: []ui.NavItem{
			item("Home", ui.IconHome, 0), item("Pipelines", ui.IconPipelines, 0), item("Runs", ui.IconRuns, 0),
			item("Reviews", ui.IconReviews, 8), item("Mailbox", ui.IconMailbox, 0), item("Settings", ui.IconSettings, 0),
		},
		User: ui.User{
			Name: "Ana Berger", Email: "ana.berger@nordlicht.example",
			Links:   []ui.Link{{Text: "Switch person", Href: "#people", Icon: ui.IconSwap}},
			SignOut: ui.Form{Action: "/sign-out", Hidden: []ui.Hidden{{Name: "_token", Value: "t"}}},
		},
		Zone: ui.Zone(now, berlin),
		Foot: []ui.Link{{Text: "AI cost in US dollars, claims in euros"}, {Text: "Help", Href: "#help"}},
	}
}

func badge(s ui.Status) *ui.Badge { return &ui.Badge{Status: s} }

func chain(kinds ...string) ui.Chain {
	var out ui.Chain
	for _, k := range kinds {
		out = append(out, ui.KindOf(k))
	}
	return out
}

func strip() *ui.Strip {
	s := ui.Strip{Words: "10,000 claims in 50 groups of 200: most done, five groups with failures, two running, two to go"}
	for i := range 50 {
		switch {
		case i == 6 || i == 17 || i == 29 || i == 30 || i == 41:
			s.Cells = append(s.Cells, ui.Failed)
		case i > 47:
			s.Cells = append(s.Cells, ui.Queued)
		case i > 45:
			s.Cells = append(s.Cells, ui.Running)
		default:
			s.Cells = append(s.Cells, ui.Done)
		}
	}
	return &s
}

// longRun is a run of three days that is stuck, retries and waits at once.
func longRun() ui.Timeline {
	hour := func(s string) time.Time { return at(s + ":00") }
	return ui.Timeline{
		ID: "timeline", Caption: "Steps of this run in order, with status, time span, duration and cost",
		Start: hour("27 Nov 2026 14:50"), Now: now, Loc: berlin,
		Steps: []ui.TimelineStep{
			{ID: "s1", Number: "1", Name: "Get claims from Guidewire", Href: "#s", Badge: ui.Badge{Status: ui.Done}, Time: "48 s",
				Bars: []ui.Stretch{{From: hour("27 Nov 2026 14:50"), To: hour("27 Nov 2026 14:51"), As: ui.Done}}},
			{ID: "s2", Number: "2", Name: "Sort claims by kind of damage", Href: "#s", Chosen: true, Badge: ui.Badge{Status: ui.Done}, Time: "40 min", Cost: "$4.58",
				Bars: []ui.Stretch{{From: hour("27 Nov 2026 14:51"), To: hour("27 Nov 2026 15:31"), As: ui.Done}}, Attempts: []time.Time{hour("27 Nov 2026 15:00")}},
			{ID: "s3", Number: "3", Name: "Do side by side", Href: "#s", Group: true, Toggle: &ui.Toggle{Href: "#t", Open: true}, Badge: ui.Badge{Status: ui.Running}, Time: "2 d 22 h", Cost: "$209.48",
				Bars: []ui.Stretch{{From: hour("27 Nov 2026 15:31"), As: ui.Running}}},
			{ID: "s3a", Number: "3a", Name: "Release 14 payments", Href: "#s", Depth: 1, Badge: ui.Badge{Status: ui.Person}, Time: "2 d 22 h",
				Bars:   []ui.Stretch{{From: hour("27 Nov 2026 15:31"), As: ui.Person}},
				Reason: ui.Sentence{ui.Name("Ben Okonkwo-Hartmann"), ui.Plain(" approved Sat 09:15; one more is needed, yours or Katharina’s. "), ui.LinkTo("Remind Katharina", "#remind")}},
			{ID: "s3b", Number: "3b", Name: "Second claim file arrives", Href: "#s", Depth: 1, Badge: ui.Badge{Status: ui.Done}, Time: "2 d 20 h",
				Bars: []ui.Stretch{{From: hour("27 Nov 2026 15:31"), To: hour("30 Nov 2026 12:05"), As: ui.Waiting, Over: true}}},
			{ID: "s3c", Number: "3c", Name: "For each claim: summarise", Href: "#s", Depth: 1, Badge: ui.Badge{Status: ui.Running}, Time: "1 h 36 min", Cost: "$206.71",
				Bars: []ui.Stretch{{From: hour("30 Nov 2026 12:06"), As: ui.Running}}, Strip: strip(),
				Reason: ui.Sentence{ui.Strong("9,412 done"), ui.Plain(" · "), ui.Strong("31 failed"), ui.Plain(" · "), ui.Strong("557 to go"), ui.Plain(", about 6 min left. "), ui.LinkTo("Show 31 failed", "#failed")}},
			{ID: "s3d", Number: "3d", Name: "Compare reports with photos", Href: "#s", Depth: 1, Badge: ui.Badge{Status: ui.Stuck}, Time: "1 h 11 min", Cost: "$2.77",
				Bars:   []ui.Stretch{{From: hour("30 Nov 2026 12:31"), As: ui.Stuck}},
				Reason: ui.Words("No sign of life for 6 min; usually every 1 min. We restart it at 13:44."),
				Action: ui.PostButton{Action: "/restart", Button: ui.Button{Text: "Restart now", Little: true, About: "step 3d"}}},
			{ID: "s3e", Number: "3e", Name: "Weather data, Wetterdienst", Href: "#s", Depth: 1, Badge: ui.Badge{Status: ui.Retrying, Words: "Retrying, 3 of 5"}, Time: "32 min",
				Bars:     []ui.Stretch{{From: hour("30 Nov 2026 13:10"), As: ui.Retrying}},
				Attempts: []time.Time{hour("30 Nov 2026 13:20"), hour("30 Nov 2026 13:36")},
				Reason:   ui.Words("Next try in 40 s. Last answer: “503 service busy”, from opendata.dwd.de.")},
			{ID: "s4", Number: "4", Name: "Reserve over €250,000?", Href: "#s", Badge: ui.Badge{Status: ui.Queued}},
			{ID: "s5", Number: "5", Name: "Write summary for branches and the reinsurer, and for everybody else who has asked for one", Href: "#s", Badge: ui.Badge{Status: ui.Queued}},
			{ID: "s6", Number: "6", Name: "Send it to 11 branch managers", Href: "#s", Badge: ui.Badge{Status: ui.Queued}},
		},
	}
}

// shortRun is a finished run of three and a half seconds of work and a wait
// for a person in the middle; it ends with each of the other states.
func shortRun() ui.Timeline {
	start := at("30 Nov 2026 09:00:00")
	after := func(d time.Duration) time.Time { return start.Add(d) }
	second, hour := time.Second, time.Hour
	return ui.Timeline{
		ID: "short", Caption: "Steps of a short run", Start: start, Now: after(2*hour + 9*second), Ended: true, Loc: berlin,
		Steps: []ui.TimelineStep{
			{ID: "q1", Number: "1", Name: longName, Href: "#q", Badge: ui.Badge{Status: ui.Done}, Time: "3 s", Cost: "$0.01",
				Bars: []ui.Stretch{{From: start, To: after(3 * second), As: ui.Done}}},
			{ID: "q2", Number: "2", Name: arabic + " " + script, Href: badScheme, Badge: ui.Badge{Status: ui.Done}, Time: "2 h",
				Bars: []ui.Stretch{{From: after(3 * second), To: after(2*hour + 3*second), As: ui.Person, Over: true}}},
			{ID: "q3", Number: "3", Name: "Held for a while", Href: "#q", Depth: 2, Badge: ui.Badge{Status: ui.Cap}, Time: "2 s",
				Bars: []ui.Stretch{{From: after(2*hour + 3*second), To: after(2*hour + 5*second), As: ui.Cap}}},
			{ID: "q4", Number: "4", Name: "Broke", Href: "#q", Depth: 4, Badge: ui.Badge{Status: ui.Failed}, Time: "2 s", Cost: "<$0.01",
				Bars: []ui.Stretch{{From: after(2*hour + 5*second), To: after(2*hour + 7*second), As: ui.Failed}}, Reason: ui.Words("The model refused the file: 131,402 tokens, limit 128,000.")},
			{ID: "q5", Number: "5", Name: "Paused", Href: "#q", Badge: ui.Badge{Status: ui.Paused}, Bars: []ui.Stretch{{From: after(2*hour + 7*second), To: after(2*hour + 8*second), As: ui.Paused}}},
			{ID: "q6", Number: "6", Name: "Never ran", Href: "#q", Badge: ui.Badge{Status: ui.Skipped}},
			{ID: "q7", Number: "7", Name: longWord, Href: "#q", Badge: ui.Badge{Status: ui.Cancelled, Words: longName}},
		},
	}
}
