package pipeline

import (
	"context"
	"strings"

	"tollgate/tenants"
)

// ModelUse is a pipeline whose steps ask models of a provider.
type ModelUse struct {
	Pipeline ID
	Name     string
	Live     bool // the version that new runs take asks them; else only the draft does
}

// ModelUses tells of every provider, as models' names begin, which pipelines ask its
// models, by their names.
func ModelUses(ctx context.Context, tx tenants.Tx) (map[string][]ModelUse, error) {
	all, err := List(ctx, tx)
	if err != nil {
		return nil, err
	}
	uses := map[string][]ModelUse{}
	for _, p := range all {
		live := map[string]bool{}
		if p.Live > 0 {
			version, err := VersionByNumber(ctx, tx, p.ID, p.Live)
			if err != nil {
				return nil, err
			}
			live = providersOf(version.Document)
		}
		for provider := range live {
			uses[provider] = append(uses[provider], ModelUse{p.ID, p.Name, true})
		}
		for provider := range providersOf(p.Draft) {
			if !live[provider] {
				uses[provider] = append(uses[provider], ModelUse{p.ID, p.Name, false})
			}
		}
	}
	return uses, nil
}

func providersOf(d Document) map[string]bool {
	list := map[string]bool{}
	for _, model := range d.Models() {
		provider, _, _ := strings.Cut(model, "/")
		list[provider] = true
	}
	return list
}
