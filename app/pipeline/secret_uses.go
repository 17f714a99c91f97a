package pipeline

import (
	"context"

	"tollgate/tenants"
)

// SecretUse is a pipeline that uses a secret.
type SecretUse struct {
	Pipeline ID
	Name     string
	Live     bool     // the version that new runs take uses it; else only the draft does
	Steps    []string // that use it, as sentences name them
}

// SecretUses tells of every secret, by its name, which pipelines use it, by their names.
func SecretUses(ctx context.Context, tx tenants.Tx) (map[string][]SecretUse, error) {
	all, err := List(ctx, tx)
	if err != nil {
		return nil, err
	}
	uses := map[string][]SecretUse{}
	for _, p := range all {
		live := map[string][]string{}
		if p.Live > 0 {
			version, err := VersionByNumber(ctx, tx, p.ID, p.Live)
			if err != nil {
				return nil, err
			}
			live = version.Document.Secrets()
		}
		for name, steps := range live {
			uses[name] = append(uses[name], SecretUse{p.ID, p.Name, true, steps})
		}
		for name, steps := range p.Draft.Secrets() {
			if _, told := live[name]; !told {
				uses[name] = append(uses[name], SecretUse{p.ID, p.Name, false, steps})
			}
		}
	}
	return uses, nil
}
