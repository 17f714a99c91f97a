package engine_test

import "tollgate/app/engine"

// onSample is the way of a sample as it was recorded, with everybody agreeing.
const onSample = "on its sample"

// no and nothing are what people may say at every turn.
var (
	no      = []string{saysNo}
	nothing = []string{saysNothing}
)

// unread lets the model of a step give nothing that can be used.
func unread(step string) map[string]string { return map[string]string{step: "refused"} }

// templateRoutes are the ways through each template: the first is that of its sample.
var templateRoutes = map[string][]route{
	"customer-email": {
		{name: onSample, result: []string{`"verdict":"approved"`}, steps: []string{"send_reply", "warn_shift"}, not: []string{"tell_team", "by_hand"}},
		{name: "refused", people: map[string][]string{"approve": no}, result: []string{`"verdict":"rejected"`}, steps: []string{"tell_team"}, not: []string{"send_reply"}},
		{name: "no answer", people: map[string][]string{"approve": nothing}, steps: []string{"tell_team"}, not: []string{"send_reply"}},
		{name: "cannot be read", fails: unread("triage"), steps: []string{"by_hand"}, not: []string{"draft"}},
		{name: "about an invoice", answers: `{"triage": {"topic": "invoice", "urgency": "normal", "order_number": null, "wish": "A corrected invoice.", "language": "German"}}`, steps: []string{"invoice_terms", "send_reply"}, not: []string{"warn_shift"}},
		{name: "a question", answers: `{"triage": {"topic": "question", "urgency": "low", "order_number": null, "wish": "A corrected invoice.", "language": "German"}}`, steps: []string{"normal_terms", "send_reply"}, not: []string{"warn_shift"}},
	},
	"second-opinion": {
		{name: onSample, result: []string{`"team":"billing"`, "most of three"}, not: []string{"decide"}},
		{name: "one model gives nothing", fails: unread("second_says"), result: []string{`"team":"billing"`}, not: []string{"decide"}},
		{name: "they disagree", answers: `{"first_says": {"team": "quality", "why": "W."}, "second_says": {"team": "delivery", "why": "W."}, "third_says": {"team": "billing", "why": "W."}}`,
			result: []string{`"team":"quality"`}, steps: []string{"decide"}},
		{name: "no model gives anything, nor do people", fails: map[string]string{"first_says": "empty", "second_says": "malformed", "third_says": "refused"},
			people: map[string][]string{"decide": nothing}, result: []string{`"team":"office"`, "nobody answered"}},
	},
	"invoice-check": {
		{name: onSample, result: []string{`"verdict":"approved"`}, steps: []string{"to_accounts"}, not: []string{"head", "by_hand"}},
		{name: "refused", people: map[string][]string{"approve": no}, result: []string{`"verdict":"rejected"`}, steps: []string{"to_supplier"}, not: []string{"to_accounts", "head"}},
		{name: "no answer, then the head agrees", people: map[string][]string{"approve": nothing}, result: []string{`"verdict":"approved"`}, steps: []string{"head", "to_accounts"}},
		{name: "nobody answers", people: map[string][]string{"approve": nothing, "head": nothing}, state: engine.RunFailed, failure: engine.ClassExpired, not: []string{"to_accounts"}},
		{name: "cannot be read", fails: unread("read"), steps: []string{"by_hand"}, not: []string{"approve"}},
		{name: "in another currency", answers: `{"read": {"supplier": "Lührs", "number": "R-1", "date": null, "total": {"amount": 100.00, "currency": "PLN"}, "order_named": true, "positions": ["Paint 10 l"]}}`, steps: []string{"unclear_note", "to_accounts"}},
		{name: "lower than agreed", answers: `{"read": {"supplier": "Lührs", "number": "R-1", "date": null, "total": {"amount": 1.00, "currency": "EUR"}, "order_named": true, "positions": ["Paint 10 l"]}}`, result: []string{`"amount":1.00`}, steps: []string{"match_note", "to_accounts"}, not: []string{"explain"}},
	},
	"invoice-list": {
		{name: onSample, result: []string{`"released":5`, `"unreadable":1`, `"total":5650.40`}},
		{name: "refused", people: map[string][]string{"release": no}, result: []string{`"released":3`, `"refused":2`}},
		{name: "no answer, and no explanation", fails: unread("explain"), people: map[string][]string{"release": nothing}, result: []string{`"refused":2`}},
	},
	"payment-reconciliation": {
		{name: onSample, result: []string{`"settled":3480.50`, `"part_settled":1`, `"clarified":2`, `"open":0`, `"unreadable":0`}, steps: []string{"part_payment", "clarify"}, not: []string{"to_cfo"}},
		{name: "nothing is booked that does not fit", people: map[string][]string{"part_payment": no, "clarify": no}, result: []string{`"settled":3480.50`, `"part_settled":0`, `"open":3`}, not: []string{"to_cfo"}},
		{name: "no answer", people: map[string][]string{"part_payment": nothing, "clarify": nothing}, result: []string{`"open":3`}, steps: []string{"to_cfo"}},
		{name: "the models find nothing", fails: unread("guess"), people: map[string][]string{"clarify": no}, result: []string{`"part_settled":1`, `"open":2`}},
		{name: "out of balance, stopped", input: `{"control_total": {"amount": 7000.00, "currency": "EUR"}}`, people: map[string][]string{"control": no}, state: engine.RunFailed, failure: "out_of_balance", not: []string{"payments"}},
		{name: "out of balance, matched all the same", input: `{"control_total": {"amount": 7000.00, "currency": "EUR"}}`, result: []string{`"settled":3480.50`}},
		{name: "a line that cannot be read", input: `{"statement": {"name": "s.csv", "content": "date;payer;reference;amount\n2026-11-30;A;RE-26-4410;1.284,50\n2026-11-30;B;RE-26-4407;846.00\n"}}`,
			result: []string{`"settled":846.00`, `"unreadable":1`}},
		{name: "an overpayment", input: `{"statement": {"name": "s.csv", "content": "date;payer;reference;amount\n2026-11-30;B;RE-26-4407;900.00\n"}, "control_total": {"amount": 900, "currency": "EUR"}}`,
			result: []string{`"settled":0`, `"clarified":1`}, steps: []string{"over", "clarify"}},
	},
	"claims-triage": {
		{name: onSample, result: []string{`"verdict":"approved"`, `"amount":2380.00`}, steps: []string{"assess", "yes_letter", "to_payments", "settled"}, not: []string{"release", "lead", "by_rule"}},
		{name: "small and clear", answers: claimOf(`"amount": {"amount": 480.00, "currency": "EUR"}, "covered": "yes", "doubts": []`), result: []string{`"amount":330.00`, "rule for small claims"}, steps: []string{"by_rule", "to_payments"}, not: []string{"assess", "release"}},
		{name: "beyond the sum insured", answers: claimOf(`"amount": {"amount": 90000.00, "currency": "EUR"}, "covered": "yes", "doubts": []`), result: []string{`"amount":64850.00`}, steps: []string{"assess"}},
		{name: "refused", people: map[string][]string{"assess": no}, result: []string{`"verdict":"rejected"`}, steps: []string{"no_letter"}, not: []string{"to_payments"}},
		{name: "no answer, then the lead agrees", people: map[string][]string{"assess": nothing}, steps: []string{"lead", "to_payments"}},
		{name: "regulatory hold, released", answers: heldClaim, result: []string{`"verdict":"approved"`}, steps: []string{"hold_note", "release", "cleared", "assess", "to_payments"}, not: []string{"by_rule"}},
		{name: "regulatory hold, kept", answers: heldClaim, people: map[string][]string{"release": no}, steps: []string{"kept"}, not: []string{"assess", "to_payments", "letter"}},
		{name: "regulatory hold, no answer", answers: heldClaim, people: map[string][]string{"release": nothing}, state: engine.RunFailed, failure: "regulatory_hold", steps: []string{"no_word"}, not: []string{"assess", "to_payments"}},
		{name: "cannot be read", fails: unread("read"), steps: []string{"unread"}, not: []string{"letter"}},
	},
	"kyc-check": {
		{name: onSample, result: []string{`"verified":true`, `"rounds":1`, `"cleared_by":"no match"`}, steps: []string{"send_welcome", "verified"}, not: []string{"request", "two"}},
		{name: "a second document", answers: `{"read": [` + passport("2021-09-05") + `, ` + passport("2034-09-05") + `]}`, result: []string{`"rounds":2`}, steps: []string{"request", "newest", "send_welcome"}, not: []string{"remind"}},
		{name: "a second document, late", answers: `{"read": [` + passport("2021-09-05") + `, ` + passport("2034-09-05") + `]}`, events: map[string][]string{"newer": nothing}, result: []string{`"rounds":2`}, steps: []string{"remind", "late", "send_welcome"}},
		{name: "no document", answers: `{"read": ` + passport("2021-09-05") + `}`, events: map[string][]string{"newer": nothing, "late": nothing}, steps: []string{"remind", "close_note"}, not: []string{"screen", "send_welcome"}},
		{name: "a match, cleared by two", answers: likelyMatch, result: []string{`"verified":true`}, steps: []string{"two", "by_two", "send_welcome"}},
		{name: "a match", answers: likelyMatch, people: map[string][]string{"two": no}, steps: []string{"refused"}, not: []string{"send_welcome", "verified"}},
		{name: "the very name on the list", input: `{"watch_list": {"name": "w.csv", "content": "name;born;list\ncamille lefèvre;1970-01-01;UN list\n"}}`, people: map[string][]string{"two": nothing}, steps: []string{"refused"}, not: []string{"send_welcome"}},
	},
	"contract-summary": {
		{name: onSample, result: []string{`"verdict":"approved"`}, steps: []string{"to_owner"}, not: []string{"head"}},
		{name: "refused", people: map[string][]string{"sign_off": no}, result: []string{`"verdict":"rejected"`}, steps: []string{"refusal"}},
		{name: "no answer, then the head saysNo", people: map[string][]string{"sign_off": nothing, "head": no}, result: []string{`"verdict":"rejected"`}, steps: []string{"head", "refusal"}},
		{name: "cannot be read", fails: unread("summarise"), steps: []string{"by_hand"}, not: []string{"sign_off"}},
		{name: "small and short", input: `{"yearly_value": {"amount": 900.00, "currency": "EUR"}}`, answers: `{"summarise": {"summary": "S.", "term_months": 12, "notice_months": 1, "renews": false, "liability": null, "risks": []}}`,
			result: []string{`"verdict":"approved"`}, steps: []string{"no_changes", "to_owner"}, not: []string{"advise"}},
	},
	"research-brief": {
		{name: onSample, result: []string{`"score":9`, `"checked_by":"nobody"`}, steps: []string{"send"}, not: []string{"look"}},
		{name: "a statement without a finding", answers: unsupported, result: []string{`"brief":"Yes."`}, steps: []string{"look", "checked", "send"}},
		{name: "a statement without a finding, not sent", answers: unsupported, people: map[string][]string{"look": no}, steps: []string{"no_brief"}, not: []string{"send"}},
		{name: "never good enough", answers: `{"judge": {"score": 5, "unsupported": [], "advice": "More."}}`, result: []string{`"score":5`}, steps: []string{"send"}, not: []string{"look"}},
	},
	"improve-text": {
		{name: onSample, result: []string{`"rounds":3`}, steps: []string{"send"}},
		{name: "a limit comes first", answers: `{"grade": {"score": 4, "advice": "Shorter."}}`, result: []string{`"rounds":5`}, steps: []string{"limit_note", "send"}},
		{name: "refused", people: map[string][]string{"approve": no}, steps: []string{"not_sent"}, not: []string{"send"}},
	},
	"content-approval": {
		{name: onSample, result: []string{`"rounds":1`}, steps: []string{"legal_check", "publish", "published"}, not: []string{"chief", "until_date"}},
		{name: "another round", people: map[string][]string{"edit": {saysNo, ""}}, result: []string{`"rounds":2`, "Flasche mitbringen"}, steps: []string{"publish"}, not: []string{"legal_check"}},
		{name: "too many rounds, then the chief editor agrees", people: map[string][]string{"edit": no}, result: []string{`"rounds":4`}, steps: []string{"publish"}},
		{name: "legal saysNo", people: map[string][]string{"legal_check": no}, steps: []string{"tell_editor"}, not: []string{"publish"}},
		{name: "no answer, then the chief editor agrees", input: `{"publish_on": "2026-01-05"}`, people: map[string][]string{"edit": nothing}, steps: []string{"chief", "until_date", "publish"}},
		{name: "no answer, then it is dropped", people: map[string][]string{"edit": nothing, "chief": no}, steps: []string{"end_dropped"}, not: []string{"publish"}},
	},
	"lead-enrichment": {
		{name: onSample, result: []string{`"ready":2`, `"later":1`, `"key_accounts":0`, `"set_aside":2`, `"unreadable":0`}, steps: []string{"account", "send"}},
		{name: "left to key accounts", people: map[string][]string{"account": no}, result: []string{`"ready":1`, `"key_accounts":1`}},
		{name: "no answer", people: map[string][]string{"account": nothing}, result: []string{`"ready":1`, `"key_accounts":1`}},
		{name: "the model gives nothing", fails: unread("judge"), result: []string{`"ready":0`, `"later":3`, `"set_aside":2`}, not: []string{"opener"}},
	},
	"incident-report": {
		{name: onSample, result: []string{`"cause":"A worn bearing"`}, steps: []string{"call", "send"}, not: []string{"remind"}},
		{name: "repaired on the second day", events: map[string][]string{"repair": nothing}, result: []string{`"cause":"A worn bearing"`}, steps: []string{"remind", "send"}},
		{name: "not repaired", events: map[string][]string{"repair": nothing, "second_day": nothing}, state: engine.RunFailed, failure: "repair_overdue", steps: []string{"overdue"}, not: []string{"write"}},
		{name: "cannot be judged", fails: unread("judge"), steps: []string{"call", "send"}},
		{name: "refused", people: map[string][]string{"sign": no}, steps: []string{"unsent"}, not: []string{"send"}},
	},
	"code-change": {
		{name: onSample, result: []string{`"verdict":"approved"`, `"checks":"passed"`}, steps: []string{"merge", "out"}, not: []string{"tell_author", "lead"}},
		{name: "checks that fail once", events: map[string][]string{"ci": {`{"status": "failed", "report": "golden invoices: 1 failed"}`, `{"status": "passed"}`}}, result: []string{`"checks":"passed"`}, steps: []string{"tell_author", "merge"}},
		{name: "checks that always fail", events: map[string][]string{"ci": {`{"status": "failed"}`}}, steps: []string{"given_up"}, not: []string{"release", "merge"}},
		{name: "no result, released all the same", events: map[string][]string{"ci": nothing}, result: []string{`"checks":"not finished"`}, steps: []string{"release", "merge"}},
		{name: "no result", events: map[string][]string{"ci": nothing}, people: map[string][]string{"checks": no}, state: engine.RunFailed, failure: "checks_overdue", not: []string{"release"}},
		{name: "a model gives nothing", fails: unread("security_look"), result: []string{`"blocked_by_a_model":false`}, steps: []string{"merge"}},
		{name: "no answer, then the lead saysNo", people: map[string][]string{"release": nothing, "lead": no}, result: []string{`"verdict":"rejected"`}, steps: []string{"back"}, not: []string{"merge"}},
	},
}

// claimOf is the answer to a claim that differs in some fields.
func claimOf(fields string) string {
	return `{"read": {"claimant": "Selin Aksoy", "kind": "water", "loss_date": null, "reason": "A burst hose.", "hold_reason": null, "language": "German", ` + fields + `}}`
}

const (
	heldClaim = `{"read": {"claimant": "Selin Aksoy", "kind": "fire", "loss_date": null, "amount": {"amount": 480.00, "currency": "EUR"}, "covered": "yes",
		"reason": "A fire in the kitchen.", "doubts": [], "hold_reason": "The public prosecutor has opened an investigation (clause 4 of the letter).", "language": "German"}}`
	likelyMatch = `{"spelling": {"risk": "high", "why": "Same name in another script and the same year of birth.", "entries": ["Camilo Lefebre Ortiz"]}}`
	unsupported = `{"judge": {"score": 8, "unsupported": ["Lockers are cheaper to insure."], "advice": "Take it out."}, "write": {"text": "Yes."}}`
)

// passport is the answer to a document that is valid until a day.
func passport(until string) string {
	return `{"name": "Camille Anne Lefèvre", "born": "1988-03-14", "number": "24FV81907", "country": "France", "expires": "` + until + `", "legible": true, "altered": []}`
}
