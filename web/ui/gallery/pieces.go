package gallery

import (
	"strings"

	"github.com/a-h/templ"

	"tollgate/web/ui"
)

func everythingLayout(theme ui.Theme) ui.Layout {
	l := layout("Gallery "+script, "Runs")
	l.Theme = theme
	l.Workspace = longName
	l.Ribbon = &ui.Ribbon{
		Text:  ui.Sentence{ui.Plain("Local mode: everything stays on this machine. You are "), ui.Name(arabic), ui.Plain(".")},
		Links: []ui.Link{{Text: "Switch person", Href: "#people"}, {Text: "Mailbox", Href: "#mailbox"}},
	}
	l.Notices = []ui.Notice{{Status: ui.Done, Text: ui.Words("Saved. The next run uses version 13.")}}
	return l
}

func trueScale(t ui.Timeline) ui.Timeline {
	t.ID, t.TrueScale, t.Steps = "true-scale", true, nil
	for _, s := range longRun().Steps[:4] {
		s.ID, s.Chosen = "true-"+s.ID, false
		t.Steps = append(t.Steps, s)
	}
	return t
}

func fieldsOf(faulty bool) []ui.Field {
	fault := func(s string) string {
		if faulty {
			return s
		}
		return ""
	}
	id := func(s string) string {
		if faulty {
			return "bad-" + s
		}
		return "good-" + s
	}
	few := []ui.Option{{Value: "a", Label: "Decide reviews", Help: "sees only what she is asked about"}, {Value: "b", Label: arabic}, {Value: "c", Label: longName, Help: longWord}}
	var many []ui.Option
	for _, c := range strings.Split("Roof,Vehicle,Water,Garden,Glass,Fire,Theft,"+longName, ",") {
		many = append(many, ui.Option{Value: c, Label: c})
	}
	return []ui.Field{
		{Kind: ui.TextField, Name: id("name"), Label: "Name " + longName, Value: script, Error: fault("Enter a name without <script>, like " + longWord)},
		{Kind: ui.EmailField, Name: id("mail"), Label: "E-mail", Value: "k.woelfing@rostock-gutachter", Error: fault("Enter the whole e-mail address, like name@company.de"), Autocomplete: "off"},
		{Kind: ui.LongField, Name: id("text"), Label: arabic, Help: "Paste the mail here.", Value: "\n" + arabic + "\n" + emoji, Optional: true},
		{Kind: ui.NumberField, Name: id("count"), Label: "How many", Value: "9007199254740993"},
		{Kind: ui.MoneyField, Name: id("limit"), Label: "May decide up to", Currency: "EUR", Help: "Above this, someone else must agree.", Value: "250,000.00", Error: fault("Enter an amount up to €25,000.00, your own authority")},
		{Kind: ui.MoneyField, Name: id("price"), Label: "Price", Currency: "CHF", Currencies: []string{"EUR", "USD", "CHF"}, CurrencyName: id("price-currency"), Value: "12.50"},
		{Kind: ui.DateField, Name: id("day"), Label: "Day of the damage", Value: "2026-11-30"},
		{Kind: ui.DateTimeField, Name: id("when"), Label: "Pay on", Zone: "Europe/Berlin (CET)", Value: "2026-11-30T17:00", Error: fault("Enter a moment that is still to come")},
		{Kind: ui.YesNoField, Name: id("sure"), Label: "Is it covered?", Value: "true"},
		{Kind: ui.ChoiceField, Name: id("role"), Label: "Can do", Options: few, Value: "a", Error: fault("Choose what this person can do")},
		{Kind: ui.ChoiceField, Name: id("kind"), Label: "Kind of damage", Options: many, Value: "Water"},
		{Kind: ui.FileField, Name: id("file"), Label: "The mail", Help: "Text, .eml, .csv or .json, up to 10 MB.", Accept: ".txt,.eml,.csv,.json", MaxBytes: 10 << 20, Error: fault("This file is no text: " + override)},
		{Kind: ui.CodeField, Name: id("code"), Label: "Code from the mail", Help: "Six digits."},
		{Kind: ui.SearchField, Name: id("find"), Label: "Find", Placeholder: "Claim number, name or run", Optional: true},
	}
}

func hostileRows() ui.Rows {
	return ui.Rows{Items: []ui.Row{
		{Name: "Release 14 payments over €5,000", Href: "#r", Reason: ui.Words("Storm Ylva: claims triage · 2 of 3 must agree"), End: "€118,204.10", EndNote: "due today 17:00"},
		{Name: longName, Href: "#r", Badge: &ui.Badge{Status: ui.Stuck}, Reason: ui.Words(longWord), End: longWord[:40], EndNote: longName[:60]},
		{Name: arabic, Href: "#r", Badge: badge(ui.Failed), Reason: ui.Sentence{ui.Strong(arabic), ui.Plain(" sent back "), ui.Name(script)}, EndNote: "since 11:02"},
		{Name: override, Href: badScheme, Bar: &ui.Progress{Label: "94 percent done", Pieces: []ui.Piece{{Status: ui.Done, Share: 94}, {Status: ui.Failed, Share: 1}}}, Reason: ui.Words("9,412 of 10,000 claims read, about 6 min left"), EndPart: ui.Words("$214.06")},
		{Reason: ui.Sentence{ui.Name("Ben Okonkwo-Hartmann"), ui.Plain(" approved 9 glass repairs")}, EndNote: "13:20"},
		{Name: broken, Reason: ui.Words(broken)},
	}}
}

func hostileTable() ui.Table {
	why := func(s ...ui.Span) ui.Cell { return ui.Cell{Rich: s} }
	row := func(name, small string, s ui.Status, reason ui.Cell, started, cost string) ui.TableRow {
		return ui.TableRow{Cells: []ui.Cell{{Text: name, Href: "#r", Small: small}, {Badge: badge(s)}, reason, {Text: started}, {Text: cost}, {Text: "3 %"}}}
	}
	return ui.Table{
		Caption: "73 runs are open or need repair. Most urgent first; times in CET.", Brief: true,
		Columns: []ui.Column{{Title: "Run"}, {Title: "Status"}, {Title: "Why, and what happens next"}, {Title: "Started", Number: true, Sort: "#s", Sorted: "descending"}, {Title: "Cost", Number: true, Sort: "#s"}, {Title: "Of its cap", Number: true}},
		Rows: []ui.TableRow{
			row("Refuse cover: Kastanienallee 41, Rostock", "Water damage, first check #3306", ui.Person, why(ui.Strong("You"), ui.Plain(" are asked to confirm clause 4.3. Due today 18:30.")), "Wed 25 Nov 09:12", "$0.07"),
			row(longName, longName, ui.Cap, why(ui.Plain(longName), ui.LinkTo("Raise the cap", "#c")), "Mon 30 Nov 08:14", "$1,240,218,204.10"),
			row("Complaint of "+arabic, script, ui.Retrying, why(ui.Name(longWord)), "Mon 30 Nov 13:40", "<$0.01"),
			row(emoji, broken, ui.Queued, why(ui.Plain("4th in line; starts within a minute.")), "–", "–"),
		},
		Foot: []ui.Cell{{Text: "Together"}, {}, {}, {}, {Text: "$216.30"}, {}},
	}
}

func smallTable() ui.Table {
	return ui.Table{
		Caption: "Spend in November by pipeline", Keep: true,
		Columns: []ui.Column{{Title: "Pipeline"}, {Title: "Spent", Number: true}, {Title: "Of its cap", Number: true}},
		Rows: []ui.TableRow{
			{Cells: []ui.Cell{{Text: "Storm Ylva: triage", Href: "#p"}, {Text: "$214.06"}, {Text: "86 %"}}},
			{Cells: []ui.Cell{{Text: "Complaint answers", Href: "#p", Badge: badge(ui.Cap)}, {Text: "$50.00"}, {Text: "100 %"}}},
			{Cells: []ui.Cell{{Text: longWord[:80], Href: "#p"}, {Text: "$0.00"}, {Text: "–"}}},
		},
	}
}

func meters() []ui.Meter {
	const dollar = 1_000_000
	return []ui.Meter{
		{Spent: 412_380_000, Reserved: 18_200_000, Forecast: 438 * dollar, Cap: 500 * dollar, What: "AI spend, November"},
		{Spent: 50 * dollar, Forecast: 61_200_000, Cap: 50 * dollar, What: "Complaint answers"},
		{Spent: 40 * dollar, Forecast: 900 * dollar, Cap: 50 * dollar, What: "Far past"},
		{Spent: 0, Cap: 50 * dollar, What: "Nothing spent"},
		{Spent: 3_100, Reserved: 60 * dollar, What: "No cap"},
		{Cap: 1, Spent: 1 << 62, What: "Beyond all bounds"},
	}
}

func bars() []ui.Progress {
	return []ui.Progress{
		{Label: "Round 3 of 5", Pieces: []ui.Piece{{Status: ui.Done, Share: 40}, {Status: ui.Running, Share: 20}, {Status: ui.Queued, Share: 40}}},
		{Label: "Retrying, attempt 2 of 5", Pieces: []ui.Piece{{Status: ui.Retrying, Share: 42}, {Status: ui.Queued, Share: 58}}},
		{Label: "Waiting for a person", Pieces: []ui.Piece{{Status: ui.Done, Share: 30}, {Status: ui.Person, Share: 70}}},
		{Label: "Too much", Pieces: []ui.Piece{{Status: ui.Cap, Share: 80}, {Status: ui.Waiting, Share: 500}, {Status: ui.Failed, Share: -3}}},
	}
}

func values() []string {
	return []string{
		`{"kind":"Roof","claims":9007199254740993,"reserve":"€9,104,550","open":true,"note":null,"empty":"","list":[1,2.50,"` + arabic + `"],"rows":[{"try":1,"outcome":"Cut off"},{"try":2,"outcome":"<script>alert(1)</script>"}],"deep":{"a":{"b":{"c":{"d":{"e":1}}}}}}`,
		`[{"kind":"Roof and facade","claims":2731,"reserve":"€9,104,550"},{"kind":"` + longName + `","claims":1482,"reserve":"€3,927,300"}]`,
		`[]`, `{}`, `""`, `"` + longWord + `"`, `not json ` + broken,
	}
}

func hostilePanel() *ui.Panel {
	table := smallTable()
	table.Tight = true
	return &ui.Panel{
		ID: "panel", Over: "Step 2 · Ask AI", Title: longName, Close: "#close", Badge: badge(ui.Done),
		Says:    ui.Sentence{ui.Plain("Sorted 6,120 claims into 7 kinds for "), ui.Name(arabic), ui.Plain(".")},
		Actions: ui.Actions{ui.Button{Text: "Rerun from here", Little: true}, ui.Button{Text: "Compare", Little: true, Href: "#c"}},
		Folds: []ui.Fold{
			{ID: "fold-result", Title: "Result", Answer: "7 rows", Open: true, Body: ui.Value{JSON: []byte(values()[0]), Label: "Result"}},
			{ID: "fold-attempts", Title: "Attempts", Answer: "2", Open: true, Body: table},
			{ID: "fold-model", Title: "Model and cost", Answer: longName, Open: true, Body: ui.Pairs{Tight: true, Items: []ui.Pair{{Label: "Model", Value: "claude-sonnet-5, first choice"}, {Label: "Read", Value: "1,431,208 tokens, $2.86"}, {Label: longWord[:40], Value: longWord}}}},
			{ID: "fold-log", Title: "Log", Answer: "38 lines", Body: templ.Component(ui.Code{Label: "Log", Text: "14:51:02 call sent"})},
		},
	}
}

func themed(here string, theme ui.Theme) ui.Layout {
	l := layout(here, here)
	l.Theme = theme
	return l
}

func narrow(l ui.Layout) ui.Layout {
	l.Narrow = true
	return l
}

func runLayout(theme ui.Theme, stream string) ui.Layout {
	l := themed("Runs", theme)
	l.Title, l.Live = "Stuck: Storm Ylva #2214", stream != ""
	return l
}

func runMeter() ui.Meter {
	return ui.Meter{Spent: 214_060_000, Reserved: 6_400_000, Forecast: 226_000_000, Cap: 250_000_000, What: "This run"}
}

func stepPanel() *ui.Panel {
	attempts := ui.Table{Caption: "Attempts of this step", CaptionUnseen: true, Keep: true, Tight: true,
		Columns: []ui.Column{{Title: "Try"}, {Title: "Outcome"}, {Title: "Time", Number: true}, {Title: "Cost", Number: true}},
		Rows: []ui.TableRow{
			{Cells: []ui.Cell{{Text: "1"}, {Text: "Cut off: provider overloaded", Small: "Fri 14:51, waited 30 s"}, {Text: "9 min"}, {Text: "$0.92", Small: "estimated"}}},
			{Cells: []ui.Cell{{Text: "2"}, {Text: "Done", Small: "Fri 15:00"}, {Text: "31 min"}, {Text: "$3.66"}}},
		}}
	return &ui.Panel{
		ID: "panel", Over: "Step 2 · Ask AI", Title: "Sort claims by kind of damage", Close: "#close", Badge: badge(ui.Done),
		Says:    ui.Words("Sorted 6,120 claims into 7 kinds. The first try was cut off by the provider after 9 min; the second finished."),
		Actions: ui.Actions{ui.Button{Text: "Rerun from here", Little: true, Href: "#rerun"}, ui.Button{Text: "Compare", Little: true, Href: "#c"}},
		Folds: []ui.Fold{
			{ID: "p-result", Title: "Result", Answer: "4 rows", Open: true, Body: ui.Value{Label: "Claims by kind of damage", JSON: []byte(`[{"Kind":"Roof and facade","Claims":2731,"Reserve":"€9,104,550"},{"Kind":"Vehicle, tree or branch","Claims":1482,"Reserve":"€3,927,300"},{"Kind":"Water through roof","Claims":1006,"Reserve":"€2,816,800"},{"Kind":"3 other kinds","Claims":313,"Reserve":"€604,090"}]`)}},
			{ID: "p-input", Title: "Input", Answer: "2 values, 4.1 MB", Open: true, Body: ui.Value{Label: "Input", JSON: []byte(`{"claims":"6,120 rows from step 1","kinds":["Roof and facade","Vehicle, tree or branch","Water through roof"]}`)}},
			{ID: "p-attempts", Title: "Attempts", Answer: "2", Open: true, Body: attempts},
			{ID: "p-model", Title: "Model and cost", Answer: "$4.58", Open: true, Body: ui.Pairs{Tight: true, Items: []ui.Pair{{Label: "Model", Value: "claude-sonnet-5, first choice"}, {Label: "Read", Value: "1,431,208 tokens, $2.86"}, {Label: "Written", Value: "172,004 tokens, $1.72"}, {Label: "Reserved", Value: "$6.00, $1.42 given back"}, {Label: "Price of", Value: "1 Nov 2026: $2 in, $10 out per million"}}}},
			{ID: "p-log", Title: "Log", Answer: "38 lines", Body: ui.Code{Label: "Log", Text: "14:51:02 call sent"}},
		},
	}
}

func besideReview() []templ.Component {
	answered := func(name string, s ui.Status, words string) ui.Row {
		return ui.Row{Reason: ui.Sentence{ui.Name(name)}, EndPart: ui.Badge{Status: s, Words: words}}
	}
	return []templ.Component{
		ui.Aside{Title: "2 of 3 must agree", Note: "One refusal stops it.", Part: ui.Rows{Items: []ui.Row{
			answered("Ben Okonkwo-Hartmann", ui.Done, "Agreed Sat 09:15"), answered("You", ui.Person, "Still to answer"), answered("Third person", ui.Queued, "Still to answer"),
		}}},
		ui.Aside{Title: "If nobody answers", Text: ui.Words("At 17:00 it goes to Jörg-Friedrich von Westernhagen-Lüttichau. Silence never releases money.")},
		ui.Aside{Title: "Earlier", Text: ui.Words("Round 1, Fri 27 Nov: Ben asked to split payments by branch. Done.")},
	}
}

// spending is a month by day, of which one day is far above the others.
func spending() ui.Chart {
	chart := ui.Chart{Says: "AI cost by day. The 21st was far above the others.", Recent: "Today $1.20", Now: 21, Ticks: []int{0, 7, 14, 21}}
	for day := range int64(22) {
		chart.Bars = append(chart.Bars, ui.Bar{When: ui.Count(day+1) + " Nov", Amount: (day % 7) * 1_900_000})
	}
	chart.Bars[20] = ui.Bar{When: "21 Nov", Amount: 221_400_000}
	chart.Bars[21] = ui.Bar{When: "22 Nov", Amount: 1_200_000, Expected: 6_000_000}
	return chart
}
