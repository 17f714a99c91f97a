package pipeline

import (
	"context"
	"fmt"
	"slices"

	"tollgate/tenants"
)

// CheckIn is Check with what only the workspace knows: whether it has the secrets and the
// pipelines that the document names.
func CheckIn(ctx context.Context, tx tenants.Tx, d Document) ([]Problem, error) {
	problems := Check(d)
	d = d.Active()
	called, err := unknownCalls(ctx, tx, d)
	if err != nil {
		return nil, err
	}
	problems = append(problems, called...)
	if len(d.Secrets()) == 0 {
		return problems, nil
	}
	stored, err := tenants.StoredSecrets(ctx, tx)
	if err != nil {
		return nil, err
	}
	var known []string
	for _, secret := range stored {
		known = append(known, secret.Name)
	}
	return append(problems, unknownSecrets(d, known)...), nil
}

// unknownSecrets tells of every place that names a secret which is not among the known.
func unknownSecrets(d Document, known []string) []Problem {
	c := checker{doc: &d, tree: grow(&d)}
	for _, n := range c.tree.all {
		call, ok := n.Step.With.(*HTTP)
		if !ok {
			continue
		}
		for i, h := range call.Headers {
			c.knownSecret(n, fmt.Sprintf("with.headers[%d].secret", i), h.Secret, known)
		}
		if call.Auth != nil {
			c.knownSecret(n, "with.auth.secret", call.Auth.Secret, known)
		}
	}
	return c.problems
}

func (c *checker) knownSecret(n *Node, path, name string, known []string) {
	if name == "" || slices.Contains(known, name) {
		return
	}
	c.blocks(n, path, "this workspace has no secret “%s”. An owner or admin can add it under Secrets; or choose another.", shown(name))
}
