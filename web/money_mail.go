package web

import (
	"context"
	"time"

	"tollgate/app/mail"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// askDeciders mails whoever may decide about a request, but not the one who made it. The
// mail leads to the request's page; opening that decides nothing.
func (s *Server) askDeciders(ctx context.Context, tx tenants.Tx, id ledger.RequestID, by tenants.UserID) error {
	request, err := ledger.RequestByID(ctx, tx, id)
	if err != nil {
		return err
	}
	members, err := tenants.Members(ctx, tx)
	if err != nil {
		return err
	}
	said, err := s.requestMail(ctx, tx, request, members)
	if err != nil {
		return err
	}
	for _, member := range members {
		if !member.Role.May(tenants.SetCaps) || member.User.ID == by || member.User.ID == request.FirstBy {
			continue
		}
		to := mail.Address{Name: member.User.Name, Email: member.User.Email}
		if _, err := s.Outbox.Queue(ctx, tx, mail.Message{To: to, Body: said}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) requestMail(ctx context.Context, tx tenants.Tx, request ledger.Request, members []tenants.Membership) (mail.Money, error) {
	asker := nameAmong(members, request.AskedBy)
	said := mail.Money{
		What: mail.KindMoneyRequest, Said: request.Reason, SaidBy: asker, Button: "Look at it and decide",
		Path: pathIn(tx.Tenant, "money", request.ID.String()),
	}
	facts, about, err := (&visit{s: s}).requestFacts(ctx, tx, request)
	if err != nil {
		return said, err
	}
	said.Title = asker + " asks to change " + about
	said.Lead = "Nothing changes until somebody who may decide about money agrees."
	if !request.FirstBy.IsZero() {
		said.Title = "A second person must confirm: " + about
		said.Lead = nameAmong(members, request.FirstBy) + " agreed. It is above the amount from which two people are needed."
	}
	for _, fact := range facts {
		said.Facts = append(said.Facts, mail.Fact{Label: fact.Label, Value: fact.Value})
	}
	return said, nil
}

// requestFacts say what a request is about and what would change.
func (v *visit) requestFacts(ctx context.Context, tx tenants.Tx, request ledger.Request) ([]ui.Pair, string, error) {
	if price := request.Change.Price; price != nil {
		own, err := ledger.OwnPrices(ctx, tx)
		return priceFacts(*price, own), "the prices of models", err
	}
	change := request.Change.Cap
	if change == nil {
		return settingsFacts(request.Change.Settings), "the rules about caps", nil
	}
	place, err := v.nameOf(ctx, tx, change.Place)
	if err != nil {
		return nil, "", err
	}
	status, err := ledger.Stand(ctx, tx, change.Place)
	if err != nil {
		return nil, "", err
	}
	now := status.Of(change.Funds)
	facts := []ui.Pair{
		{Label: "Cap now", Value: limitWords(now.Limit, change.Place) + alertWords(now.AlertOnly)},
		{Label: "Asked for", Value: limitWords(change.Limit, change.Place) + alertWords(change.AlertOnly)},
		{Label: "Spent", Value: ui.Dollars(int64(now.Spent)) + ", and " + ui.Dollars(int64(now.Held)) + " reserved"},
	}
	if !change.Until.IsZero() {
		zone, err := time.LoadLocation(status.Zone)
		if err != nil {
			zone = time.UTC
		}
		facts = append(facts, ui.Pair{Label: "Ends", Value: ui.When(change.Until, request.AskedAt, zone) + ", then " + limitWords(change.After, change.Place) + " again"})
	}
	if change.Funds == ledger.Pretend {
		facts = append(facts, ui.Pair{Label: "Dollars", Value: "pretend, nobody pays them"})
	}
	return facts, "the AI spend cap of " + place.inText(), nil
}

func alertWords(only bool) string {
	if only {
		return ", which only alerts"
	}
	return ""
}

// priceFacts say what a change of prices would set.
func priceFacts(c ledger.PriceChange, own []ledger.OwnPrice) []ui.Pair {
	switch {
	case c.Add != nil:
		price := c.Add.Price()
		return []ui.Pair{{Label: "Model", Value: c.Add.Model}, {Label: "A million tokens read", Value: rateWords(price.Input)},
			{Label: "A million tokens written", Value: rateWords(price.Output)}, {Label: "From and into the cache", Value: rateWords(price.CacheRead) + ", " + rateWords(price.CacheWrite)}}
	case c.Alias != nil:
		return []ui.Pair{{Label: "Name on the bill", Value: c.Alias.Billed}, {Label: "Costs what this model costs", Value: c.Alias.Model}}
	case c.RemoveAlias != "":
		return []ui.Pair{{Label: "Name that is removed", Value: c.RemoveAlias}}
	}
	facts := []ui.Pair{{Label: "What is done", Value: "a price of this workspace is taken out of use"}}
	for _, price := range own {
		if price.ID == c.Retire {
			facts = append(facts, ui.Pair{Label: "Model", Value: price.Provider + "/" + price.Model}, ui.Pair{Label: "Read and written", Value: rateWords(price.Input) + ", " + rateWords(price.Output)})
		}
	}
	return facts
}

func settingsFacts(s *ledger.Settings) []ui.Pair {
	if s == nil {
		return nil
	}
	second := "never"
	if s.SecondAbove != nil {
		second = "above " + ui.Dollars(int64(*s.SecondAbove))
	}
	return []ui.Pair{{Label: "A second person confirms", Value: second}}
}

// tellAsker mails whoever asked what became of it, unless she decided it herself.
func (s *Server) tellAsker(ctx context.Context, tx tenants.Tx, id ledger.RequestID, by tenants.Membership) error {
	request, err := ledger.RequestByID(ctx, tx, id)
	if err != nil || request.AskedBy == by.User.ID || request.State == ledger.RequestOpen {
		return err
	}
	people, err := tenants.People(ctx, tx, []tenants.UserID{request.AskedBy})
	asker, there := people[request.AskedBy]
	if err != nil || !there {
		return err
	}
	facts, about, err := (&visit{s: s}).requestFacts(ctx, tx, request)
	if err != nil {
		return err
	}
	verdict := "agreed to change "
	if request.State == ledger.RequestDeclined {
		verdict = "declined to change "
	}
	said := mail.Money{
		What: mail.KindMoneyAnswer, Title: by.User.Name + " " + verdict + about, Lead: "You asked for it.", Said: request.Note, SaidBy: by.User.Name,
		Button: "Look at it", Path: pathIn(tx.Tenant, "money", id.String()),
	}
	for _, fact := range facts {
		said.Facts = append(said.Facts, mail.Fact{Label: fact.Label, Value: fact.Value})
	}
	_, err = s.Outbox.Queue(ctx, tx, mail.Message{To: mail.Address{Name: asker.Name, Email: asker.Email}, Body: said})
	return err
}

func nameAmong(members []tenants.Membership, id tenants.UserID) string {
	for _, member := range members {
		if member.User.ID == id {
			return member.User.Name
		}
	}
	return tenants.FormerMember
}
