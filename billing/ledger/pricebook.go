package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// OwnPrice is a price that a tenant has entered.
type OwnPrice struct {
	Price
	Note    string
	By      tenants.UserID
	SetAt   time.Time
	Retired time.Time // zero while it is in use
}

// Alias is a name under which a provider bills a model that has a price under another.
// Both are whole names: "openai/gpt-5.6-terra".
type Alias struct{ Billed, Model string }

// Prices are what models cost a tenant now: its own prices, the newest first, before those
// that the release knows, and all of them under their aliases too. Where nothing has
// changed since the last look, it reads one row.
func Prices(ctx context.Context, tx tenants.Tx) (PriceList, error) {
	var version int64
	err := tx.QueryRow(ctx, `SELECT version FROM price_lists WHERE tenant_id = $1`, tx.Tenant).Scan(&version)
	if errors.Is(err, pgx.ErrNoRows) {
		return shipped, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}
	if list, known := lists.get(tx.Tenant, version); known {
		return list, nil
	}
	own, err := OwnPrices(ctx, tx)
	if err != nil {
		return nil, err
	}
	aliases, err := Aliases(ctx, tx)
	if err != nil {
		return nil, err
	}
	list := listOf(own, aliases)
	lists.put(tx.Tenant, version, list)
	return list, nil
}

func listOf(own []OwnPrice, aliases []Alias) PriceList {
	var list PriceList
	for _, p := range own {
		if p.Retired.IsZero() {
			list = append(list, p.Price)
		}
	}
	list = append(list, shipped...)
	var named PriceList
	for _, alias := range aliases {
		provider, name, _ := strings.Cut(alias.Billed, "/")
		for _, p := range list {
			if p.name() == alias.Model {
				p.Provider, p.Model, p.AliasOf = provider, name, alias.Model
				named = append(named, p)
			}
		}
	}
	return append(list, named...)
}

// PaidBy is what counts of the list for calls with one side's key. A workspace knows what
// it pays for its own, and pretend dollars are anybody's to price. What the installation
// pays for is not the workspace's to say: there its prices count only for models that the
// release knows nothing of, and its aliases do not count at all.
func (l PriceList) PaidBy(payer Payer) PriceList {
	if payer == PayerOwn || len(l) == len(shipped) {
		return l
	}
	return slices.DeleteFunc(slices.Clone(l), func(p Price) bool {
		own := !p.ID.IsZero() && p.Funds == Real && slices.ContainsFunc(shipped, func(known Price) bool { return known.name() == p.name() })
		return own || p.AliasOf != ""
	})
}

// name is the model with its provider.
func (p Price) name() string { return p.Provider + "/" + p.Model }

// lists keeps what was last read of tenants that have prices of their own.
var lists priceLists

type priceLists struct {
	sync.Mutex
	known map[tenants.ID]knownList
}

type knownList struct {
	version int64
	list    PriceList
}

// manyLists is how many tenants' prices are kept; beyond it they are all let go.
const manyLists = 1000

func (l *priceLists) get(tenant tenants.ID, version int64) (PriceList, bool) {
	l.Lock()
	defer l.Unlock()
	found, known := l.known[tenant]
	return found.list, known && found.version == version
}

func (l *priceLists) put(tenant tenants.ID, version int64, list PriceList) {
	l.Lock()
	defer l.Unlock()
	if l.known == nil || len(l.known) >= manyLists {
		l.known = map[tenants.ID]knownList{}
	}
	l.known[tenant] = knownList{version: version, list: slices.Clip(list)}
}

const ownPriceColumns = `id, model, valid_from, valid_to, input::bigint, output::bigint, cache_read::bigint, cache_write::bigint,
	cache_write_long::bigint, long_over, long_input::bigint, long_output::bigint, long_cache_read::bigint,
	long_cache_write::bigint, long_cache_write_long::bigint, note, set_by, set_at, retired_at`

// OwnPrices are all prices that the tenant has ever entered, the newest first.
func OwnPrices(ctx context.Context, tx tenants.Tx) ([]OwnPrice, error) {
	rows, err := tx.Query(ctx, `SELECT `+ownPriceColumns+` FROM prices WHERE tenant_id = $1 ORDER BY set_at DESC, id DESC`, tx.Tenant)
	if err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}
	own, err := pgx.CollectRows(rows, scanOwnPrice)
	if err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}
	return own, nil
}

func scanOwnPrice(row pgx.CollectableRow) (OwnPrice, error) {
	var p OwnPrice
	var model string
	var from, to, retired *time.Time
	var over *int64
	var short, long priceColumns
	err := row.Scan(&p.ID, &model, &from, &to, &short.Input, &short.Output, &short.CacheRead, &short.CacheWrite,
		&short.CacheWriteLong, &over, &long.Input, &long.Output, &long.CacheRead, &long.CacheWrite, &long.CacheWriteLong,
		&p.Note, &p.By, &p.SetAt, &retired)
	if err != nil {
		return OwnPrice{}, err
	}
	p.Provider, p.Model, _ = strings.Cut(model, "/")
	p.From, p.To, p.Retired = orZero(from), orZero(to), orZero(retired)
	rates := short.rates()
	p.Input, p.Output, p.CacheRead = rates.Input, rates.Output, rates.CacheRead
	p.CacheWrite, p.CacheWriteLong = rates.CacheWrite, rates.CacheWriteLong
	if over != nil {
		p.LongOver, p.Long = *over, long.rates()
	}
	p.Funds, p.Source = fundsOf(p.Provider), "entered by this workspace"
	return p, nil
}

func (c priceColumns) rates() Rates {
	return Rates{rateOf(c.Input), rateOf(c.Output), rateOf(c.CacheRead), rateOf(c.CacheWrite), rateOf(c.CacheWriteLong)}
}

func orZero(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.UTC()
}

// fundsOf are the funds that a provider's models are paid from, whoever sets the price.
func fundsOf(provider string) Funds {
	for _, p := range shipped {
		if p.Provider == provider {
			return p.Funds
		}
	}
	return Real
}

// FundsOf are the funds that a model is paid from.
func FundsOf(model string) Funds {
	provider, _, _ := strings.Cut(model, "/")
	return fundsOf(provider)
}

// Aliases are the names under which models are billed, in their order.
func Aliases(ctx context.Context, tx tenants.Tx) ([]Alias, error) {
	rows, err := tx.Query(ctx, `SELECT billed, model FROM price_aliases WHERE tenant_id = $1 ORDER BY billed`, tx.Tenant)
	if err != nil {
		return nil, fmt.Errorf("read aliases of models: %w", err)
	}
	aliases, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Alias])
	if err != nil {
		return nil, fmt.Errorf("read aliases of models: %w", err)
	}
	return aliases, nil
}

// Shipped are the prices that the release knows.
func Shipped() PriceList { return slices.Clone(shipped) }
