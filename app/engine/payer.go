package engine

import (
	"strings"

	"tollgate/billing/ledger"
)

// payer notes whose key pays for a call. What costs pretend dollars has no key.
func (d *decider) payer(reserved *ledger.Hold) error {
	if reserved == nil || reserved.Price.Funds == ledger.Pretend {
		return nil
	}
	if d.scope.keys == nil {
		return d.ask(want{kind: wantKeys})
	}
	provider, _, _ := strings.Cut(reserved.Model, "/")
	if key, own := d.scope.keys[provider]; own {
		reserved.Payer, reserved.Key = ledger.PayerOwn, ledger.KeyID(key)
	}
	return nil
}
