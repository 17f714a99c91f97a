package web

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/a-h/templ"

	"tollgate/app/review"
	"tollgate/web/ui"
)

// beside is what stands beside a question or its end: who else answers, what silence
// leads to, and where it comes from.
func (a asking) beside() []templ.Component {
	var parts []templ.Component
	if len(a.Review.Seats) > 1 || a.readOnly {
		parts = append(parts, a.people())
	}
	_, over := a.ended()
	if a.Review.Open() && !over && a.Review.DueAt != nil {
		silence := cmp.Or(a.content().Consequences.Silence, "The run then goes on as its builder set. Silence never counts as yes, unless the step says so.")
		parts = append(parts, ui.Aside{Title: "If nobody answers", Text: ui.Sentence{ui.Name(silence)}})
	}
	return append(parts, ui.Aside{Title: "Where this comes from", Text: a.origin()})
}

func (a asking) origin() ui.Sentence {
	name := runTitle(a.run)
	if !a.inside {
		return ui.Sentence{ui.Plain("The pipeline “"), ui.Name(a.content().PipelineName), ui.Plain("”, run “"), ui.Name(a.content().RunName), ui.Plain("”.")}
	}
	link := ui.LinkTo(name, pathIn(a.Tenant, "runs", a.run.ID.String()))
	if a.content().RunName == "" {
		return ui.Sentence{link}
	}
	return ui.Sentence{link, ui.Plain(", “"), ui.Name(a.content().RunName), ui.Plain("”")}
}

// listedPeople bounds the list of who is asked.
const listedPeople = 8

// people tells how many must agree, and to members who did.
func (a asking) people() ui.Aside {
	aside := ui.Aside{Title: a.quorum()}
	if a.Review.Open() && len(a.Review.Seats) > 1 {
		aside.Note = "The first answer stands."
		if a.Review.Needed() > 1 {
			aside.Note = "One “" + a.labels().Reject + "” stops it."
		}
	}
	if !a.knowsNames() {
		aside.Text = ui.Words(a.counts())
		return aside
	}
	var rows ui.Rows
	for _, seat := range a.Review.Seats[:min(len(a.Review.Seats), listedPeople)] {
		badge := a.badgeOf(seat)
		name := seat.Name
		if seat.ID == a.Seat.ID {
			name = "You"
		}
		rows.Items = append(rows.Items, ui.Row{Reason: ui.Sentence{ui.Name(name)}, EndPart: badge})
	}
	if rest := len(a.Review.Seats) - listedPeople; rest > 0 {
		rows.Items = append(rows.Items, ui.Row{Reason: ui.Words("and " + ui.Plural(int64(rest), "other", "others"))})
	}
	aside.Part = rows
	return aside
}

// knowsNames tells whether she may learn who else is asked: members may.
func (a asking) knowsNames() bool { return a.inside || a.Seat.Member }

func (a asking) quorum() string {
	seats, needed := len(a.Review.Seats), a.Review.Needed()
	switch {
	case seats == 1:
		return "Who is asked"
	case needed > 1:
		return fmt.Sprintf("%d of %d must agree", needed, seats)
	}
	if !a.Review.Open() {
		return ui.Plural(int64(seats), "person was asked", "people were asked")
	}
	return ui.Plural(int64(seats), "person is asked", "people are asked")
}

// counts is what people from outside learn of the others.
func (a asking) counts() string {
	var parts []string
	if agreed := a.Review.Agreed(); agreed > 0 {
		parts = append(parts, ui.Count(int64(agreed))+" agreed")
	}
	if left := len(a.Review.Seats) - len(a.Review.Answers); left > 0 && a.Review.Open() {
		parts = append(parts, ui.Count(int64(left))+" still to answer")
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + "."
}

func (a asking) badgeOf(seat review.SeatRow) ui.Badge {
	answer, answered := a.Review.AnswerOf(seat.ID)
	switch {
	case answered && answer.Verdict == review.Reject:
		return ui.Badge{Status: ui.Failed, Words: "Rejected"}
	case answered && answer.Verdict == review.SendBack:
		return ui.Badge{Status: ui.Retrying, Words: "Wants changes"}
	case answered:
		return ui.Badge{Status: ui.Done, Words: "Agreed"}
	case !a.Review.Open():
		return ui.Badge{Status: ui.Skipped, Words: "Not needed"}
	case seat.ID == a.Seat.ID || a.readOnly:
		return ui.Badge{Status: ui.Person, Words: "Still to answer"}
	}
	return ui.Badge{Status: ui.Queued, Words: "Still to answer"}
}

// names lists who is asked, as many as fit into a sentence, of those that keep tells.
func (a asking) names(keep func(review.SeatRow) bool) []string {
	const most = 3
	var names []string
	for _, seat := range a.Review.Seats {
		if keep == nil || keep(seat) {
			names = append(names, seat.Name)
		}
	}
	if rest := len(names) - most; rest > 0 {
		names = append(names[:most], ui.Plural(int64(rest), "other", "others"))
	}
	return names
}
