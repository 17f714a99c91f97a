package web

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// orderDocument posts to another system with a secret.
const orderDocument = `{"semantics": 3, "name": "Orders", "input": [{"name": "n", "label": "Number", "type": "number", "required": true}], "steps": [
	{"id": "post", "name": "Post the order", "kind": "http", "with": {"method": "POST", "url": "https://erp.example.com/orders", "body": "{\"n\": input.n}",
		"auth": {"kind": "bearer", "secret": "ERP key"}}},
	{"id": "status", "name": "Ask for its status", "kind": "http", "with": {"method": "GET", "url": "https://erp.example.com/orders/{{ input.n }}",
		"headers": [{"name": "X-Own", "secret": "ERP key"}]}}]}`

const typedSecret = "erp-key-0123456789-wxyz"

// A secret is added, found where it is used, replaced and deleted, and never shown.
func TestSecretsOfAWorkspace(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	owner := s.in(tenants.Owner)
	owner.get(s.at("secrets")).is(http.StatusOK).says("No secret is stored")
	owner.post(s.at("secrets", "add"), "name", "ERP key", "value", "123", "hosts", "").is(http.StatusUnprocessableEntity).says("at least 6 characters", "ERP key").hides(`value="123"`)
	owner.post(s.at("secrets", "add"), "name", "ERP key", "value", typedSecret, "hosts", "erp.example.com, sso.example.com").is(http.StatusSeeOther)
	owner.post(s.at("secrets", "add"), "name", "ERP key", "value", typedSecret, "hosts", "").is(http.StatusUnprocessableEntity).says("of this name already").hides(typedSecret)
	s.publish(s.home, parsed(t, orderDocument))
	owner.get(s.at("secrets")).is(http.StatusOK).says("ERP key", "…wxyz", "used by 1 pipeline", "Added by", "erp.example.com and sso.example.com").hides("0123456789")

	id := s.secretIDs()[0]
	at := s.at("secrets", id.String())
	owner.get(at).is(http.StatusOK).says("Orders", "in its live version", "Step 1 “Post the order” and Step 2").hides("0123456789")
	owner.post(at, "value", "another-value", "hosts", "erp.example.com").is(http.StatusSeeOther)
	owner.get(at).is(http.StatusOK).says("Replaced").hides("another-value", "wxyz")
	owner.get(at+"/delete").is(http.StatusOK).says("Delete this secret?", "fails at these steps")
	owner.post(at + "/delete").is(http.StatusSeeOther)
	owner.post(at + "/delete").is(http.StatusNotFound).says("no such secret")
	require.Empty(t, s.secretIDs())
	require.NotContains(t, s.log.String(), "0123456789")
	s.in(tenants.Builder).get(s.at("secrets")).is(http.StatusForbidden)
}

func parsed(t testing.TB, document string) pipeline.Document {
	t.Helper()
	d, err := pipeline.Parse([]byte(document))
	require.NoError(t, err)
	return d
}

func (s *site) secretIDs() (ids []tenants.StoredSecretID) {
	s.t.Helper()
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		ids = nil
		all, err := tenants.StoredSecrets(ctx, tx)
		for _, secret := range all {
			ids = append(ids, secret.ID)
		}
		return err
	})
	return ids
}

// A pipeline that names a secret which is not there cannot be published, and is told where
// and what to do.
func TestUnknownSecretsAreTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	document := parsed(t, orderDocument)
	err := s.db.InTx(t.Context(), s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		id, err := pipeline.Create(ctx, tx, document, "", s.home.people[tenants.Owner].User.ID)
		if err != nil {
			return err
		}
		_, err = pipeline.Publish(ctx, tx, id, "", s.home.people[tenants.Owner].User.ID)
		return err
	})
	var invalid *pipeline.Invalid
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, []string{"post", "with.auth.secret"}, []string{invalid.Problems[0].Step, invalid.Problems[0].Field})
	require.Equal(t, []string{"status", "with.headers[0].secret"}, []string{invalid.Problems[1].Step, invalid.Problems[1].Field})
	require.Contains(t, invalid.Problems[0].Message, "no secret “ERP key”. An owner or admin can add it")
}

func TestTheLookOfSecrets(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	owner := s.in(tenants.Owner)
	owner.post(s.at("secrets", "add"), "name", "ERP key", "value", typedSecret, "hosts", "erp.example.com").is(http.StatusSeeOther)
	owner.post(s.at("secrets", "add"), "name", "Warehouse password", "value", typedSecret, "hosts", "").is(http.StatusSeeOther)
	s.publish(s.home, parsed(t, orderDocument))
	id := s.secretIDs()[0].String()
	for _, view := range browsertest.Views {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, view)
			become(p, s, tenants.Owner)
			for name, path := range map[string]string{"secrets": s.at("secrets"), "secret": s.at("secrets", id), "secret-add": s.at("secrets", "add"), "secret-delete": s.at("secrets", id, "delete")} {
				p.Go(s.web.origin + path)
				p.Shot(name)
				p.Check(t)
			}
		})
	}
}
