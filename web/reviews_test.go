package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/tenants"
	"tollgate/web/ui"
)

func TestTheInboxIsMineByDeadline(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	reviewer := s.in(tenants.Reviewer)
	reviewer.get(s.at("reviews")).is(http.StatusOK).says("No decision waits for you", "Nothing to review", "Nothing yet")
	ask := func(topic string, due time.Duration) {
		document := askingDocument("Press")
		if due > 0 {
			wait := pipeline.Duration(due)
			document.Steps[0].With.(*pipeline.Review).Due = &wait
		}
		s.asked(document, topic)
	}
	ask("never", 0)
	ask("in a month", 30*24*time.Hour)
	ask("soon", 30*time.Hour)
	p := reviewer.get(s.at("reviews")).is(http.StatusOK).says("Three decisions wait for you", "The nearest deadline is", "Within a week", "Later", "No deadline")
	var titles []string
	for _, row := range p.all("li", "data-testid", "review") {
		titles = append(titles, textOf(row))
	}
	require.Len(t, titles, 3)
	for i, topic := range []string{"soon", "in a month", "never"} {
		require.Contains(t, titles[i], "Shall we publish "+topic+"?")
		require.Contains(t, titles[i], "Press · "+topic)
	}
	s.in(tenants.Owner).get(s.at("reviews")).says("No decision waits for you").hides("Shall we publish")
}

func TestDecidingInside(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, detail := s.asked(askingDocument("Press"), "the shop")
	reviewer, path := s.in(tenants.Reviewer), s.at("reviews", detail.ID.String())
	reviewer.get(path).is(http.StatusOK).answer("choice", "reject").is(http.StatusUnprocessableEntity).
		says("There is 1 thing to fix", "Say why")
	reviewer.get(path).answer("choice", "reject", "comment", "Too early.").leadsTo(path)
	reviewer.get(path).says("You rejected this", "Too early.", "Signed in as", "Open the run")
	reviewer.get(s.at("reviews")).says("No decision waits for you", "You decided last", "Shall we publish the shop?", "Rejected")
	entries := s.recorded(detail.ID)
	require.Len(t, entries, 1)
	require.Equal(t, tenants.ByMember(s.home.people[tenants.Reviewer]), entries[0].Actor)
	require.Equal(t, "reject", entries[0].Detail["verdict"])
	s.in(tenants.Owner).get(path).is(http.StatusOK).says("Already decided", "rejected it")
}

// Members who are not asked see whom it asks, and cannot answer.
func TestOthersSeeWhoIsAsked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	link, detail := s.asked(askingDocument("Press"), "the shop")
	path := s.at("reviews", detail.ID.String())
	digest := s.visitor().get(link).form("answer").Get("digest")
	for _, role := range []tenants.Role{tenants.Owner, tenants.Viewer, tenants.Auditor} {
		b := s.in(role)
		p := b.get(path).is(http.StatusOK).says("You can look, and others decide.", detail.Seats[0].Name, "the shop")
		require.Empty(t, p.all("input", "type", "radio"))
		b.post(path, "choice", "approve", "digest", digest).is(http.StatusForbidden)
	}
	require.True(t, s.reviewNow(s.home, detail.ID).Open())
}

func TestSeveralMustAgree(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.calls.say(drafted(draftReply))
	document := refundDocument(pipeline.Person{Role: string(tenants.Reviewer)}, outsider, pipeline.Person{Role: string(tenants.Admin)})
	document.Steps[1].With.(*pipeline.Review).Policy = pipeline.Policy{Rule: pipeline.PolicyN, N: 2}
	_, detail := s.asked(document, "€420.00")
	path := s.at("reviews", detail.ID.String())
	reviewer := s.in(tenants.Reviewer)
	reviewer.get(path).says("2 of 3 must agree", "1 more person must agree. Then: The money is paid today", outsider.Email).
		answer("choice", "approve").leadsTo(path)
	reviewer.get(path).says("You approved this", "1 more person must agree")

	var outside string
	for _, seat := range detail.Seats {
		if seat.Address == outsider.Email {
			outside = "/r/" + s.secret.SeatToken(seat.ID, 1)
		}
	}
	// Where several agree to one thing nobody may edit it; people from outside learn
	// counts and no names.
	p := s.visitor().get(outside).says("1 agreed, 2 still to answer").hides(detail.Seats[0].Name)
	require.NotContains(t, p.form("answer"), "edit.reply")
	p.answer("choice", "approve").leadsTo(outside)
	require.Equal(t, review.OutcomeApproved, s.reviewNow(s.home, detail.ID).Outcome)
	s.in(tenants.Admin).get(path).says("Already decided")
}

func TestEditsAreWhatWasChanged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.calls.say(drafted(draftReply))
	document := refundDocument(outsider)
	link, detail := s.asked(document, "€420.00")
	b := s.visitor()
	b.get(link).answer("choice", "approve", "edit.amount", "lots", "edit.reply", "").is(http.StatusUnprocessableEntity).
		says("There are 2 things to fix", "an amount like 420.00 EUR", "Enter “Answer to the customer”")
	shown := b.get(link).answer("show", "changes", "choice", "approve", "edit.amount", "13.50", "edit.goodwill", "true").is(http.StatusOK)
	shown.says("2 changes, not sent yet", "Refund it with 2 changes")
	require.True(t, s.reviewNow(s.home, detail.ID).Open())
	b.get(link).answer("show", "changes").is(http.StatusOK).says("Nothing is changed")

	shown.answer().leadsTo(link)
	require.Equal(t, map[string]json.RawMessage{
		"amount": json.RawMessage(`{"amount":"13.50","currency":"EUR"}`), "goodwill": json.RawMessage(`true`),
	}, s.reviewNow(s.home, detail.ID).Answers[0].Edits)
	b.get(link).says("You approved this with 2 changes", "€420.00", "€13.50")

	// What was edited is what the run goes on with.
	s.work()
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		progress, err := engine.ProgressOf(ctx, tx, detail.RunID)
		require.NoError(t, err)
		content, err := engine.Value(ctx, tx, progress.Steps[1].Output)
		require.NoError(t, err)
		require.Contains(t, string(content.Bytes), `"13.50"`)
		return nil
	})
}

// A form that is sent as it was shown is no edit, whatever the value looks like.
func TestNothingIsEditedByAccident(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	values := map[review.FieldType][]string{
		review.FieldText:     {`null`, `""`, `"a"`, `" a  b "`, `"a\nb"`, `"\n\na\n"`, `"a\r\nb\rc"`, `"<b>&amp;\u0000\u001f"`, `"` + strings.Repeat("long ", 100) + `"`, `12`, `{"a":[1,2]}`},
		review.FieldNumber:   {`null`, `0`, `9007199254740993`, `1.50`, `-0.00`, `1e400`, `"12"`, `"lots"`},
		review.FieldMoney:    {`null`, `{"amount":"420.00","currency":"EUR"}`, `{"amount":9007199254740993.10,"currency":"CHF"}`, `{"amount":1}`, `"42 EUR"`, `{}`, `[1]`},
		review.FieldDate:     {`null`, `"2026-11-30"`, `"soon"`, `"2026-13-99"`, `5`},
		review.FieldDateTime: {`null`, `"2026-11-30T17:00:00+01:00"`, `"2026-11-30T16:00:59.123Z"`, `"2026-03-29T01:30:00Z"`, `"soon"`},
		review.FieldYesNo:    {`null`, `true`, `false`, `"yes"`},
		review.FieldChoice:   {`null`, `"a"`, `"gone"`, `7`},
	}
	for kind, all := range values {
		for _, value := range all {
			for _, many := range []bool{false, true} {
				field := review.EditableField{Name: "f", Type: kind, Value: json.RawMessage(value), Choices: []review.Choice{{Value: "a"}, {Value: "b", Label: "B"}}}
				for i := range 8 {
					if many { // a list in place of radio buttons
						field.Choices = append(field.Choices, review.Choice{Value: strings.Repeat("c", i+1)})
					}
				}
				typed, sent := sentBack(t, editor{field, 0, zone})
				if !sent {
					continue // an untouched question of radio buttons sends nothing
				}
				_, changed, err := editor{field, 0, zone}.read(typed)
				require.NoError(t, err, "%s %s", kind, value)
				require.False(t, changed, "%s %s came back as %q", kind, value, typed)
			}
		}
	}
}

// sentBack is what a browser sends of a field that nobody touched.
func sentBack(t *testing.T, e editor) (string, bool) {
	t.Helper()
	var out strings.Builder
	field := e.input(nil, "")
	out.WriteString(`<form id="answer">`)
	require.NoError(t, field.Render(t.Context(), &out))
	out.WriteString(`</form>`)
	values := readMarkup(t, out.String()).form("answer")
	if !values.Has(field.Name) {
		return "", false
	}
	typed := values.Get(field.Name)
	if field.Kind != ui.LongField {
		typed = strings.NewReplacer("\r", "", "\n", "").Replace(typed) // a field of one line drops them
	}
	return typed, true
}

func TestTypedValuesAreRead(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	cases := []struct {
		kind               review.FieldType
		value, typed, want string
	}{
		{review.FieldText, `"a"`, "b", `"b"`},
		{review.FieldText, `"a\nb"`, "a\r\nc", `"a\nc"`},
		{review.FieldNumber, `1`, "9007199254740993", `9007199254740993`},
		{review.FieldMoney, `{"amount":"1.00","currency":"EUR"}`, "2.50", `{"amount":"2.50","currency":"EUR"}`},
		{review.FieldMoney, `null`, "2.50 CHF", `{"amount":2.50,"currency":"CHF"}`},
		{review.FieldDate, `"2026-11-30"`, "2026-12-01", `"2026-12-01"`},
		{review.FieldDateTime, `"2026-11-30T17:00:00+01:00"`, "2026-07-01T09:30", `"2026-07-01T09:30:00+02:00"`},
		{review.FieldDateTime, `"2026-11-30T17:00:00+01:00"`, "", `null`},
		{review.FieldYesNo, `true`, "false", `false`},
		{review.FieldChoice, `"a"`, "b", `"b"`},
		{review.FieldChoice, `"gone"`, "b", `"b"`},
	}
	for _, c := range cases {
		field := review.EditableField{Name: "f", Type: c.kind, Value: json.RawMessage(c.value), Choices: []review.Choice{{Value: "a"}, {Value: "b"}}}
		value, changed, err := editor{field, 0, zone}.read(c.typed)
		require.NoError(t, err, c)
		require.True(t, changed, c)
		require.Equal(t, c.want, string(value), c)
	}
}

func TestWordChanges(t *testing.T) {
	t.Parallel()
	cases := []struct {
		before, after string
		want          []piece
	}{
		{"", "", nil},
		{"same text", "same text", []piece{{Text: "same text"}}},
		{"We pay 80 %.", "We pay 100 %.", []piece{{Text: "We pay "}, {Text: "80", Removed: true}, {Text: "100", Added: true}, {Text: " %."}}},
		{"Dear Ms Smith, we are sorry.\nKind regards", "We pay.", []piece{{Text: "Dear Ms Smith, we are sorry.\nKind regards", Removed: true}, {Text: "We pay.", Added: true}}},
		{"", "new", []piece{{Text: "new", Added: true}}},
		{"old", "", []piece{{Text: "old", Removed: true}}},
		{"a\nb", "a\nb\nc", []piece{{Text: "a\nb"}, {Text: "\nc", Added: true}}},
	}
	for _, c := range cases {
		require.Empty(t, cmp.Diff(c.want, wordChanges(c.before, c.after)), c.before)
	}
}

func FuzzWordChanges(f *testing.F) {
	f.Add("We pay 80 %.", "We pay\n100 %!")
	f.Add("\xff a", "a \u202e")
	f.Add(strings.Repeat("a ", 3000), strings.Repeat("b ", 3000))
	f.Fuzz(func(t *testing.T, before, after string) {
		var old, changed strings.Builder
		for _, p := range wordChanges(before, after) {
			require.False(t, p.Added && p.Removed)
			if !p.Added {
				old.WriteString(p.Text)
			}
			if !p.Removed {
				changed.WriteString(p.Text)
			}
		}
		require.Equal(t, before, old.String())
		require.Equal(t, after, changed.String())
	})
}

func TestMaskedAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"ana@client.com": "a…@client.com", "é@x.org": "é…@x.org", "@x.org": "…@x.org", "": "…@"} {
		require.Equal(t, want, maskedAddress(address))
	}
}
