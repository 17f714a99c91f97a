package web

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/notice"
	"tollgate/tenants"
)

func TestOneChoosesWhoIsTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.publish(s.home, askingDocument(hostile))
	path := s.at("pipelines", id.String(), "told")
	b := s.in(tenants.Builder)
	builder, owner := s.home.people[tenants.Builder].User, s.home.people[tenants.Owner].User
	b.get(s.at("pipelines", id.String())).is(http.StatusOK).says(builder.Name + " gets a mail when its runs are in trouble.").hides("<img")
	b.get(path).is(http.StatusOK).says("Runs that stand still", hostile).hides("whsec_")
	b.post(path, "owner", builder.ID.String(), "backup", builder.ID.String()).is(http.StatusUnprocessableEntity).says("Choose two, or nobody as backup")
	b.post(path, "owner", tenants.NewID[tenants.User]().String()).is(http.StatusUnprocessableEntity).says("not in the workspace")
	b.post(path, "hook", "ftp://x").is(http.StatusUnprocessableEntity).says("Enter a whole address")
	b.post(path, "owner", "odd").is(http.StatusNotFound)
	b.post(path, "owner", builder.ID.String(), "backup", owner.ID.String(), "kinds", "failed", "kinds", "capped", "hook", "https://example.com/hooks").is(http.StatusSeeOther)
	secretOf := func() string {
		return textOf(b.get(path).is(http.StatusOK).all("pre", "id", "hook-secret")[0])
	}
	first := secretOf()
	require.True(t, strings.HasPrefix(first, "whsec_"))
	b.post(path+"/renew", "generation", "1").is(http.StatusSeeOther)
	second := secretOf()
	require.NotEqual(t, first, second)
	b.post(path+"/renew", "generation", "1").is(http.StatusSeeOther)
	require.Equal(t, second, secretOf(), "the same form does it once")
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		settings, err := notice.SettingsOf(ctx, tx, id)
		require.Equal(t, []notice.Kind{notice.Failed, notice.Capped}, settings.Kinds)
		return err
	})
	s.in(tenants.Viewer).get(path).is(http.StatusForbidden)
	s.in(tenants.Viewer).get(s.at("pipelines", id.String())).is(http.StatusOK).says(builder.Name, owner.Name, "get a mail")
	require.NotContains(t, s.log.String(), "whsec_")
}
