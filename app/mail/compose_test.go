package mail

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"tollgate/tenants"
)

var update = flag.Bool("update", false, "write the golden files anew")

var composedAt = time.Date(2026, 11, 27, 9, 30, 0, 0, time.UTC)

func testLinks(t testing.TB) Links {
	t.Helper()
	secret, err := tenants.NewSecret(bytes.Repeat([]byte{7}, 32))
	require.NoError(t, err)
	return Links{Secret: secret, BaseURL: "https://tollgate.example"}
}

// composed takes a body the way the outbox does: cleaned, written, read, composed.
func composed(t testing.TB, body Body, workspace string) Composed {
	t.Helper()
	clean, err := body.cleaned()
	require.NoError(t, err)
	data, err := json.Marshal(clean)
	require.NoError(t, err)
	m := Mail{
		ID: ID{15: 0x22}, Kind: clean.kind(), SeatID: [16]byte{1}, Generation: 1, Subject: clean.subject(), MessageID: "m@tollgate.example",
		To: Address{Name: "Käthe Wölfing", Email: "k.woelfing@rostock-gutachter.example"}, CreatedAt: composedAt, data: data,
	}
	out, err := compose(composing{mail: m, workspace: workspace, links: testLinks(t), now: composedAt}, Address{Email: "no-reply@tollgate.example"})
	require.NoError(t, err)
	return out
}

func fullRequest() ReviewRequest {
	due := time.Date(2026, 11, 30, 16, 0, 0, 0, time.UTC)
	return ReviewRequest{
		Requester: "Ana Berger", Why: "Assessors, Storm Ylva", PipelineName: "Storm claims", Title: "Release 14 payments over €5,000?",
		Facts: []Fact{
			{"Together", "€118,204.10"}, {"Payments", "14, to 14 customers"}, {"Largest", "€19,870.00, محمد عبد الله الأحمد"},
			{"Paid from", "Storm reserve 2026, cost centre 4410"}, {"Booked", "Today after 17:00, arrives Wed 2 Dec"},
			{"Policy", "NL-2026"}, {"Claim", "118204"}, {"Region", "North"},
		},
		Proposal:   "13 of the 14 fit the policy without question.\nFor claim NL-2026-118204 the roof was repaired in 2024 with material below the agreed class, so clause 4.3 lets us pay 80 %, €9,936.00.",
		ProposalBy: "claude-sonnet-5", ProposalAI: true, CanEdit: true, ApproveLabel: "Release", RejectLabel: "Refuse",
		OnApprove: "all 14 are paid today.", OnReject: "nothing is paid, Ana is told why.", OnSilence: "at 17:00 nothing is paid.",
		Needed: 2, Asked: 3, Due: &due, Zone: "Europe/Berlin",
	}
}

// askedForMoney is a mail about a raise.
func askedForMoney(title, said string) Money {
	return Money{
		What: KindMoneyRequest, Title: title, Lead: "14 runs are stopped until the cap allows them to go on.",
		Facts: []Fact{{"Cap now", "$50.00 a month"}, {"Asked for", "$90.00 until 30 November"}}, Said: said, SaidBy: "Chi Nguyen",
		Button: "Look at it and decide", Path: "/w/01a22fe4-cc96-79d7-a4f5-d0630683d7c3/money/01a22fe4-cc96-79d7-a4f5-d0630683d7c3",
	}
}

// troubles is a mail about runs in trouble.
func troubles(name, words string) Notice {
	workspace := "/w/01a22fe4-cc96-79d7-a4f5-d0630683d7c3"
	return Notice{Pipeline: name, Settings: workspace + "/pipelines/01a22fe4-cc96-79d7-a4f5-d0630683d7c3/told", Items: []NoticeItem{
		{Words: words, First: composedAt.Add(-time.Hour), Last: composedAt, Advice: "Once the cause is gone, the failed step can be tried again for all of them at once.", Path: workspace + "/runs?class=timeout&state=failed"},
		{Words: "14 runs waited for the AI spend cap", More: 4, Over: true, First: composedAt.Add(-30 * time.Hour), Last: composedAt.Add(-time.Hour), Path: workspace + "/runs?state=capped"},
	}}
}

func bodies() map[string]Body {
	return map[string]Body{
		"review-full": fullRequest(),
		"review-bare": ReviewRequest{PipelineName: "Customer e-mail triage", Title: "Send this reply", Needed: 1, Asked: 1, Zone: "UTC"},
		"money":       askedForMoney("Chi Nguyen asks to raise the AI spend cap of “Complaint answers”", "the letters of storm Ylva\ncame all at once"),
		"notice":      troubles("Customer e-mail triage", "1,004 runs failed at “Draft the reply”: the other side did not answer in time"),
		"code":        LoginCode{ID: tenants.LoginCodeID{3}, Expires: composedAt.Add(10 * time.Minute)},
		"step": Step{
			To: []Address{{Name: "Jane Doe", Email: "jane@client.example"}}, Subject: "Your refund",
			Text: "Dear Jane,\n\nwe have paid back €420.00.\nIt arrives by Wednesday.\n\nKind regards\nNordlicht",
		},
	}
}

func TestComposedMailsAreAsWritten(t *testing.T) {
	t.Parallel()
	for name, body := range bodies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := composed(t, body, "Nordlicht Versicherung AG")
			golden(t, name+".html", got.HTML)
			golden(t, name+".txt", "From: "+got.From.header().String()+"\nSubject: "+got.Subject+"\n\n"+got.Text)
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s changed (-want +got), -update writes it anew:\n%s", name, diff)
	}
}

// hostile is what a name or a text may hold. None of it may act.
const hostile = "</p><a href=//evil.example>Verify</a><img src=http://evil.example/x.png><script>x()</script><style>*{}</style>" +
	"\r\nBcc: x@evil.example\r\n\r\n{{.Link}} \u202Eevil\x00\xff <form action=//evil.example><input>"

func hostileBodies() map[string]Body {
	due := composedAt
	return map[string]Body{
		"review": ReviewRequest{
			Requester: hostile, Why: hostile, PipelineName: hostile, Title: hostile, Facts: []Fact{{hostile, hostile}}, Proposal: hostile,
			ProposalBy: hostile, ApproveLabel: hostile, RejectLabel: hostile, OnApprove: hostile, OnReject: hostile, OnSilence: hostile,
			Needed: 1, Asked: 2, Due: &due, Zone: hostile,
		},
		"code":   LoginCode{},
		"money":  askedForMoney(hostile, hostile),
		"notice": troubles(hostile, hostile),
		"step":   Step{To: []Address{{Name: hostile, Email: "jane@client.example"}}, Subject: hostile, Text: hostile},
	}
}

func TestHostileTextStaysText(t *testing.T) {
	t.Parallel()
	for name, body := range hostileBodies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := composed(t, body, hostile)
			for _, header := range []string{got.Subject, got.From.Name, got.To[0].Name} {
				require.NotContains(t, header, "\n")
				require.NotContains(t, header, "\r")
				require.NotContains(t, header, "\u202E")
				require.LessOrEqual(t, len([]rune(header)), maxSubject)
			}
			plain := composed(t, plainTwin(body), "Plain")
			require.Equal(t, shape(t, plain.HTML), shape(t, got.HTML), "hostile text changed the elements of the mail")
			for _, link := range hrefs(t, got.HTML) {
				require.True(t, strings.HasPrefix(link, "https://tollgate.example/r/") || strings.HasPrefix(link, "https://tollgate.example/w/"), link)
			}
		})
	}
}

// plainTwin is the same kind of mail with harmless words in the same places.
func plainTwin(body Body) Body {
	due := composedAt
	switch b := body.(type) {
	case ReviewRequest:
		return ReviewRequest{
			Requester: "a", Why: "a", PipelineName: "a", Title: "a", Facts: []Fact{{"a", "a"}}, Proposal: "a\nb\n\nc", ProposalBy: "a",
			ApproveLabel: "a", RejectLabel: "a", OnApprove: "a", OnReject: "a", OnSilence: "a", Needed: 1, Asked: 2, Due: &due, Zone: "UTC",
		}
	case Money:
		return askedForMoney("a", "a\nb\n\nc")
	case Step:
		b.To, b.Subject, b.Text = []Address{{Email: "a@client.example"}}, "a", "a\nb\n\nc"
		return b
	}
	return body
}

// shape lists the elements and attribute names of a page.
func shape(t *testing.T, page string) []string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	var out []string
	for node := range root.Descendants() {
		if node.Type != html.ElementNode {
			continue
		}
		tag := node.Data
		for _, attribute := range node.Attr {
			tag += " " + attribute.Key
		}
		out = append(out, tag)
	}
	return out
}

func hrefs(t *testing.T, page string) []string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	var out []string
	for node := range root.Descendants() {
		for _, attribute := range node.Attr {
			if attribute.Key == "href" || attribute.Key == "src" || attribute.Key == "action" {
				out = append(out, attribute.Val)
			}
		}
	}
	return out
}

func TestMailsFetchNothingAndHoldNoScript(t *testing.T) {
	t.Parallel()
	for name, body := range bodies() {
		got := composed(t, body, "Nordlicht")
		for _, element := range shape(t, got.HTML) {
			tag, _, _ := strings.Cut(element, " ")
			require.NotContains(t, []string{"img", "script", "form", "input", "button", "iframe", "link", "object", "base"}, tag, name)
		}
		require.NotContains(t, got.HTML, "url(", name)
		require.NotContains(t, got.HTML, "@import", name)
		require.Less(t, len(got.HTML), 40<<10, name)
	}
}

func TestRequestIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ab ", 1<<20)
	body := ReviewRequest{
		Requester: long, Title: long, Proposal: long, OnApprove: long, ApproveLabel: long, PipelineName: long,
		Facts: make([]Fact, 1000), Needed: 1, Asked: 1,
	}
	for i := range body.Facts {
		body.Facts[i] = Fact{long, long}
	}
	got := composed(t, body, long)
	require.Less(t, len(got.HTML), 40<<10)
	require.Contains(t, got.Text, "994 more on the page.")
	require.LessOrEqual(t, len([]rune(got.Subject)), maxSubject)
}

func TestSubjectsKeepTheDeadline(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 11, 30, 16, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		request ReviewRequest
		want    string
	}{
		"question":    {ReviewRequest{Title: "Release 14 payments?", Due: &due, Zone: "Europe/Berlin"}, "Release 14 payments? Decide by Mon 30 Nov, 17:00 CET"},
		"statement":   {ReviewRequest{Title: "Approve refund", Due: &due, Zone: "UTC"}, "Approve refund. Decide by Mon 30 Nov, 16:00 UTC"},
		"no deadline": {ReviewRequest{Title: "Approve refund"}, "Approve refund"},
		"unnamed zone": {ReviewRequest{Title: "Approve refund", Due: &due, Zone: "America/Sao_Paulo"},
			"Approve refund. Decide by Mon 30 Nov, 13:00 UTC-03"},
		"other side of the date line": {ReviewRequest{Title: "Approve", Due: &due, Zone: "Pacific/Auckland"}, "Approve. Decide by Tue 1 Dec, 05:00 NZDT"},
		"very long": {ReviewRequest{Title: strings.Repeat("x", 500), Due: &due, Zone: "UTC"},
			strings.Repeat("x", 189) + "… Decide by Mon 30 Nov, 16:00 UTC"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, test.request.subject())
		})
	}
}

func TestDeadlineOfAnotherYearNamesIt(t *testing.T) {
	t.Parallel()
	due := time.Date(2027, 1, 4, 16, 0, 0, 0, time.UTC)
	got := composed(t, ReviewRequest{Title: "Ok?", Due: &due, Zone: "Europe/Berlin", Needed: 1, Asked: 1}, "N")
	require.Contains(t, got.Text, "Decide by Mon 4 Jan 2027, 17:00 CET.")
}

func TestLoginCodeIsNeitherStoredNorInTheSubject(t *testing.T) {
	t.Parallel()
	body := LoginCode{ID: tenants.LoginCodeID{3}, Expires: composedAt.Add(10 * time.Minute)}
	digits := tenants.LoginDigits(testLinks(t).Secret, body.ID)
	got := composed(t, body, "")
	require.Contains(t, got.Text, digits[:3]+" "+digits[3:])
	require.Contains(t, got.HTML, digits[:3]+" "+digits[3:])
	require.NotContains(t, got.Subject, digits[:3])
	stored, err := json.Marshal(body)
	require.NoError(t, err)
	require.NotContains(t, string(stored), digits)
}

func TestQuorumSaysHowManyMustAgree(t *testing.T) {
	t.Parallel()
	tests := []struct {
		needed, asked int
		want          string
	}{{1, 1, ""}, {1, 3, "3 people are asked; the first answer stands."}, {3, 3, "All 3 people must agree."}, {2, 3, "2 of 3 people must agree."}}
	for _, test := range tests {
		require.Equal(t, test.want, requestPage{ReviewRequest: ReviewRequest{Needed: test.needed, Asked: test.asked}}.Quorum())
	}
}
