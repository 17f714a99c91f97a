package jobs_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/notice"
	"tollgate/app/pipeline"
	"tollgate/jobs"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// A message is sent under one id until it is taken, each time with a signature that the
// other side can check, and never to an address inside the network.
func TestMessagesToOtherSystemsAreSignedAndTriedAgain(t *testing.T) {
	t.Parallel()
	secret, err := tenants.NewSecret(bytes.Repeat([]byte{7}, 32))
	require.NoError(t, err)
	db := dbtest.Open(t)
	tenant, user := db.Tenant(t)
	var id pipeline.ID
	require.NoError(t, db.InTx(t.Context(), tenant, func(ctx context.Context, tx tenants.Tx) error {
		id, err = pipeline.Create(ctx, tx, pipeline.Document{Semantics: 1, Name: "Replies"}, "", user)
		return err
	}))
	var got []string
	answers := []int{500, 204}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, notice.HookKey(secret, id, 1))
		mac.Write([]byte(r.Header.Get("webhook-id") + "." + r.Header.Get("webhook-timestamp") + "." + string(body)))
		require.Equal(t, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)), r.Header.Get("webhook-signature"))
		got = append(got, r.Header.Get("webhook-id")+" "+string(body))
		w.WriteHeader(answers[len(got)-1])
	}))
	t.Cleanup(server.Close)
	room := notice.New(notice.Config{DB: db.DB, Secret: secret})
	super := db.Super(t)
	queue := func(url string) {
		_, err := super.Exec(t.Context(), `INSERT INTO notice_hooks (tenant_id, id, pipeline_id, url, generation, body) VALUES ($1, gen_random_uuid(), $2, $3, 1, '{"a":1}')`, tenant, id, url)
		require.NoError(t, err)
	}
	state := func() (state, problem string) {
		require.NoError(t, super.QueryRow(t.Context(), `SELECT state, last_error FROM notice_hooks`).Scan(&state, &problem))
		return state, problem
	}
	sender, err := jobs.NewHooks(db.DB, room, server.Listener.Addr().String())
	require.NoError(t, err)
	queue(server.URL)
	send := func(sender *jobs.Hooks) {
		_, err := super.Exec(t.Context(), `UPDATE notice_hooks SET next_try_at = now()`)
		require.NoError(t, err)
		_, err = sender.Send(t.Context())
		require.NoError(t, err)
	}
	send(sender)
	now, problem := state()
	require.Equal(t, "queued", now)
	require.Equal(t, "The other side answered 500.", problem)
	send(sender)
	now, _ = state()
	require.Equal(t, "sent", now)
	require.Len(t, got, 2)
	require.Equal(t, got[0], got[1], "the same message under the same id")
	send(sender)
	require.Len(t, got, 2, "what was taken is not sent again")

	_, err = super.Exec(t.Context(), `DELETE FROM notice_hooks`)
	require.NoError(t, err)
	guarded, err := jobs.NewHooks(db.DB, room)
	require.NoError(t, err)
	queue(server.URL)
	for range 10 {
		send(guarded)
	}
	now, problem = state()
	require.Equal(t, "failed", now)
	require.NotContains(t, problem, "127.0.0.1", "what is inside the network is not told")
	require.Len(t, got, 2)
}
