package web

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/mail"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// capped sets the workspace's monthly cap of pretend dollars.
func (s *site) capped(limit ledger.Micros) {
	s.t.Helper()
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		return ledger.SetCap(ctx, tx, ledger.Cap{Place: ledger.OfTenant(s.home.ID), Funds: ledger.Pretend, Limit: &limit})
	})
}

// limit is that cap as it stands.
func (s *site) limit() *ledger.Micros {
	s.t.Helper()
	var month ledger.MonthStatus
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		month, err = ledger.Month(ctx, tx)
		return err
	})
	return month.Pretend.Limit
}

// mails are the subjects of the mails about money to a person.
func (s *site) moneyMails(to tenants.Membership) []mail.Mail {
	s.t.Helper()
	var found []mail.Mail
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		all, err := s.outbox.List(ctx, tx)
		for _, one := range all {
			if one.To.Email == to.User.Email && (one.Kind == mail.KindMoneyRequest || one.Kind == mail.KindMoneyAnswer || one.Kind == mail.KindSpendAlert) {
				found = append(found, one)
			}
		}
		return err
	})
	return found
}

// form reads what a cap's form carries, changed by the given pairs.
func (p *page) capForm(pairs ...string) []string {
	given := map[string]bool{}
	for i := 0; i < len(pairs); i += 2 {
		given[pairs[i]] = true
	}
	for _, name := range []string{formKeyName, wasName, fundsName, limitName} {
		if !given[name] && len(p.all("input", "name", name)) > 0 {
			pairs = append(pairs, name, p.field(name))
		}
	}
	return pairs
}

func TestACapIsRaisedAndAllStoppedRunsGoOn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.capped(0)
	s.calls.say(engine.Reply{Output: []byte(`{"text":"Dear Ms Oduya"}`), Bill: triaged.Bill})
	id := s.publish(s.home, askDocument("Complaint answers"))
	runs := []engine.Run{s.start(s.home, id, map[string]string{"topic": "a"}), s.start(s.home, id, map[string]string{"topic": "b"})}
	s.work()
	owner := s.in(tenants.Owner)
	owner.get(s.at("caps")).is(http.StatusOK).says("Two runs are stopped by a cap.", "Complaint answers", "allows no AI calls", "up to $0.")
	p := owner.get(s.at("caps", "workspace")).is(http.StatusOK)
	p.says("The workspace has spent its cap. Two runs are stopped.", "Go on now", "I choose which", "Stopped by the cap")

	for _, wrong := range []string{"-1", "1,5", "lots", "99999999999999"} {
		owner.post(s.at("caps", "workspace"), p.capForm(limitName, wrong)...).is(http.StatusUnprocessableEntity).says("There is 1 thing to fix")
	}
	owner.post(s.at("caps", "workspace"), p.capForm(limitName, "5", wasName, "$9.00")...).is(http.StatusConflict)
	owner.post(s.at("caps", "workspace"), limitName, "5").is(http.StatusBadRequest)
	require.Zero(t, *s.limit(), "nothing was changed")

	owner.post(s.at("caps", "workspace"), p.capForm(limitName, "5", modeName, modeStop, lengthName, forPeriod, stoppedTag, stoppedAll, reasonName, "Ylva letters")...).is(http.StatusSeeOther)
	require.Equal(t, 5*ledger.Dollar, *s.limit())
	s.work()
	for _, run := range runs {
		owner.get(s.at("runs", run.ID.String())).is(http.StatusOK).says("Nothing is left to do")
	}
	owner.get(s.at("caps", "workspace")).is(http.StatusOK).says("$5.00", "then $0.00 again", "Owner", "set it to", "“Ylva letters”", "This cap ends")
}

func TestRunsGoOnByChoice(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.capped(0)
	s.calls.say(engine.Reply{Output: []byte(`{"text":"Dear Ms Oduya"}`), Bill: triaged.Bill})
	id := s.publish(s.home, askDocument("Complaint answers"))
	first, second := s.start(s.home, id, map[string]string{"topic": "a"}), s.start(s.home, id, map[string]string{"topic": "b"})
	s.work()
	finance := s.in(tenants.Finance)
	p := finance.get(s.at("caps", "workspace"))
	finance.post(s.at("caps", "workspace"), p.capForm(limitName, "5", stoppedTag, stoppedSome)...).is(http.StatusSeeOther)
	woken, err := s.engine.ResumeFitting(t.Context())
	require.NoError(t, err)
	require.Zero(t, woken, "they wait for a word although there is room")
	p = finance.get(s.at("caps", "workspace")).says("It waits for a word of yours.", "Which go on")
	finance.post(s.at("caps", "workspace", "go-on"), p.capForm("run", second.ID.String())...).is(http.StatusSeeOther)
	s.work()
	finance.get(s.at("runs", second.ID.String())).says("Nothing is left to do")
	finance.get(s.at("runs", first.ID.String())).says("Stopped by the cap")
	finance.post(s.at("caps", "workspace", "go-on"), p.capForm(stoppedTag, stoppedAll)...).is(http.StatusSeeOther)
	s.work()
	finance.get(s.at("runs", first.ID.String())).says("Nothing is left to do")
}

// Asking to raise: those who may decide get a mail, a GET decides nothing, and whoever
// asked is told.
func TestARaiseIsAskedForByMailAndGrantedOnThePage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.capped(ledger.Dollar)
	builder, finance := s.in(tenants.Builder), s.in(tenants.Finance)
	p := builder.get(s.at("caps", "workspace")).is(http.StatusOK).says("Ask for another cap")
	require.Empty(t, p.all("", "data-testid", "set-cap"))
	builder.post(s.at("caps", "workspace"), p.capForm(limitName, "9")...).is(http.StatusForbidden)
	asked := builder.post(s.at("caps", "workspace", "ask"), p.capForm(limitName, "9", lengthName, forGood, reasonName, "the letters <b>came</b> at once")...).is(http.StatusSeeOther)
	request := asked.header.Get("Location")
	builder.post(s.at("caps", "workspace", "ask"), p.capForm(limitName, "9", lengthName, forGood)...).leadsTo(request)
	require.Equal(t, ledger.Dollar, *s.limit())

	for _, role := range []tenants.Role{tenants.Owner, tenants.Admin, tenants.Finance} {
		mails := s.moneyMails(s.home.people[role])
		require.NotEmpty(t, mails, role)
		require.Contains(t, mails[0].Subject, "asks to change the AI spend cap of the workspace")
	}
	require.Empty(t, s.moneyMails(s.home.people[tenants.Builder]))
	require.Empty(t, s.moneyMails(s.home.people[tenants.Reviewer]))

	builder.get(request).is(http.StatusOK).says("Nobody has decided yet", "Owners, admins and finance members decide", "Take the request back").hides("<b>came")
	shown := finance.get(request).is(http.StatusOK).says("Asked for", "$9.00 a month", "the letters <b>came</b> at once")
	for range 3 {
		finance.get(request)
	}
	require.Equal(t, ledger.Dollar, *s.limit(), "a GET decides nothing")
	finance.get(s.at("caps")).says("Waits for a decision")
	key := shown.field(formKeyName)
	builder.post(request+"/grant", formKeyName, key, limitName, "9").is(http.StatusForbidden)
	finance.post(request+"/grant", formKeyName, key, limitName, "x").is(http.StatusUnprocessableEntity)
	finance.post(request+"/grant", formKeyName, key, limitName, "7", reasonName, "seven will do").leadsTo(request)
	require.Equal(t, 7*ledger.Dollar, *s.limit())
	finance.post(request+"/grant", formKeyName, key, limitName, "9").is(http.StatusConflict)
	told := s.moneyMails(s.home.people[tenants.Builder])
	require.Len(t, told, 1)
	require.Contains(t, told[0].Subject, "agreed to change the AI spend cap of the workspace")
	builder.get(request).says("Agreed", "“seven will do”")
}

func TestAboveTheAmountASecondPersonConfirmsOnThePage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.capped(ledger.Dollar)
	owner, finance := s.in(tenants.Owner), s.in(tenants.Finance)
	rules := owner.get(s.at("settings", "money")).is(http.StatusOK)
	owner.post(s.at("settings", "money"), formKeyName, rules.field(formKeyName), secondName, "x", runCapName, "-4").is(http.StatusUnprocessableEntity).says("There are 2 things to fix")
	owner.post(s.at("settings", "money"), formKeyName, rules.field(formKeyName), secondName, "100", runCapName, "2.50", turnName, "false").is(http.StatusSeeOther)
	p := finance.get(s.at("caps", "workspace")).says("Above $100.00 a second person confirms")
	request := finance.post(s.at("caps", "workspace"), p.capForm(limitName, "101")...).is(http.StatusSeeOther).header.Get("Location")
	require.Equal(t, ledger.Dollar, *s.limit())
	require.NotEmpty(t, s.moneyMails(s.home.people[tenants.Owner]))
	require.Empty(t, s.moneyMails(s.home.people[tenants.Finance]), "not to whoever agreed")
	shown := finance.get(request).is(http.StatusOK).says("You agreed already.")
	require.Empty(t, shown.all("", "data-testid", "grant"))
	key := owner.get(request).says("Confirm as the second person").field(formKeyName)
	finance.post(request+"/grant", formKeyName, key).is(http.StatusForbidden)
	owner.post(request+"/grant", formKeyName, key, limitName, "5000").is(http.StatusSeeOther)
	require.Equal(t, 101*ledger.Dollar, *s.limit(), "the second person confirms what the first wrote")
	// Nor does one alone drop the rule.
	rules = finance.get(s.at("settings", "money"))
	finance.post(s.at("settings", "money"), formKeyName, rules.field(formKeyName), secondName, "", turnName, "false").is(http.StatusSeeOther)
	owner.get(s.at("settings", "money")).says("Rules about caps")
	require.Equal(t, "100.00", owner.get(s.at("settings", "money")).field(secondName))
	owner.get(s.at("caps")).says("Change the rules about caps")
}

func TestCapsOfEveryKindHaveAPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.spend(1, "Refunds")[0]
	owner := s.in(tenants.Owner)
	places := []string{"workspace", "day", "tests", "pipeline-" + id.String(), "centre-4410 Ärger/%2F", "run-" + s.start(s.home, id, map[string]string{"topic": "x"}).ID.String()}
	for _, place := range places {
		p := owner.get(s.at("caps", place)).is(http.StatusOK)
		owner.post(s.at("caps", place), p.capForm(limitName, "12.50", modeName, modeAlert)...).is(http.StatusSeeOther)
		owner.get(s.at("caps", place)).is(http.StatusOK).says("This cap does not stop spending", "$12.50", "which only alerts")
	}
	list := owner.get(s.at("caps")).is(http.StatusOK).says("Workspace, month", "Workspace, day", "Refunds, month", "Cost centre 4410 Ärger/%2F, month", "alerts only", "Tests by builders")
	require.False(t, strings.Contains(list.body, "run-"), "runs have their own pages")
	for _, lost := range []string{"nothing", "pipeline-", "centre-", "centre-" + strings.Repeat("x", 101), "run-x", "key-" + id.String(), "step-" + id.String()} {
		owner.get(s.at("caps", lost)).is(http.StatusNotFound)
	}
}

func TestTheLookOfCaps(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	ids := s.spend(2, "Complaint answers", hostile, "Recovery from third parties, which is a long name for a pipeline of an insurer")
	s.capped(300 * ledger.Cent / 10)
	small := 8 * ledger.Cent
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		if err := ledger.SetCap(ctx, tx, ledger.Cap{Place: ledger.OfPipeline(ledger.PipelineID(ids[0])), Funds: ledger.Pretend, Limit: &small}); err != nil {
			return err
		}
		return ledger.SetCap(ctx, tx, ledger.Cap{Place: ledger.OfTests(s.home.ID), Funds: ledger.Pretend, Limit: &small, AlertOnly: true})
	})
	for range 3 {
		s.start(s.home, ids[0], map[string]string{"topic": "Complaint of Hannelore Petersen-Brockmann"})
	}
	s.work()
	builder := s.in(tenants.Builder)
	p := builder.get(s.at("caps", "pipeline-"+ids[0].String()))
	request := builder.post(s.at("caps", "pipeline-"+ids[0].String(), "ask"), p.capForm(limitName, "90", lengthName, forPeriod, reasonName, "the Ylva letters came all at once "+hostile)...).is(http.StatusSeeOther).header.Get("Location")
	for _, view := range browsertest.Views {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, view)
			become(p, s, tenants.Owner)
			look := func(name, path string) {
				p.Go(s.web.origin + path)
				p.Shot(name)
				p.Check(t)
			}
			look("caps", s.at("caps"))
			look("cap", s.at("caps", "pipeline-"+ids[0].String()))
			look("cap-day", s.at("caps", "day"))
			look("money-request", request)
			look("money-rules", s.at("settings", "money"))
		})
	}
}
