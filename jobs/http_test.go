package jobs_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/jobs"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

const keyValue = `sk-"quoted"/0123456789`

// desk is a workspace with a secret, and another system that its steps may call.
type desk struct {
	t      *testing.T
	db     *dbtest.Database
	vault  tenants.Vault
	tenant tenants.ID
	caller *jobs.HTTP
	url    string
}

func newDesk(t *testing.T, other http.HandlerFunc) *desk {
	t.Helper()
	server := httptest.NewServer(other)
	t.Cleanup(server.Close)
	d := &desk{t: t, db: dbtest.Open(t), url: server.URL}
	var user tenants.UserID
	d.tenant, user = d.db.Tenant(t)
	secret, err := tenants.NewSecret(make([]byte, 32))
	require.NoError(t, err)
	d.vault, err = tenants.NewVault(secret)
	require.NoError(t, err)
	d.caller, err = jobs.NewHTTP(d.db.DB, d.vault, server.Listener.Addr().String())
	require.NoError(t, err)
	owner := tenants.Membership{User: tenants.User{ID: user, Name: "Olga"}, Role: tenants.Owner}
	require.NoError(t, d.db.InTx(t.Context(), d.tenant, func(ctx context.Context, tx tenants.Tx) error {
		if _, err := tenants.AddSecret(ctx, tx, d.vault, tenants.NewSecretValue{Name: "bound", Value: keyValue, Hosts: []string{"api.example.com"}}, owner); err != nil {
			return err
		}
		_, err := tenants.AddSecret(ctx, tx, d.vault, tenants.NewSecretValue{Name: "ERP key", Value: keyValue}, owner)
		return err
	}))
	return d
}

func (d *desk) call(input engine.HTTPInput) engine.Reply {
	d.t.Helper()
	if !strings.HasPrefix(input.URL, "http") {
		input.URL = d.url + input.URL
	}
	if input.Method == "" {
		input.Method = "GET"
	}
	input.Success, input.MaxBytes = []string{"2xx"}, 1<<20
	encoded, err := json.Marshal(input)
	require.NoError(d.t, err)
	require.NotContains(d.t, string(encoded), "0123456789", "what is stored of a call has no secret in it")
	return d.caller.Call(d.t.Context(), engine.Call{Tenant: d.tenant, Attempt: 1, Key: "the-key", Input: encoded})
}

// The other side repeats all that it was sent: nothing of the secret comes back, whatever
// the way in which it was sent and the way in which the answer is read.
func TestSecretsAreInsertedLastAndMaskedEverywhere(t *testing.T) {
	t.Parallel()
	var seen atomic.Value
	d := newDesk(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent := map[string]any{"url": r.URL.String(), "query": r.URL.Query(), "headers": r.Header, "body": string(body)}
		if user, password, ok := r.BasicAuth(); ok {
			sent["user"], sent["password"], sent["basic"] = user, password, base64.StdEncoding.EncodeToString([]byte(user+":"+password))
		}
		encoded, _ := json.Marshal(sent)
		seen.Store(string(encoded))
		w.Header().Set("X-Echo", r.Header.Get("Authorization")+url.QueryEscape(keyValue))
		w.Header().Set("Set-Cookie", "session=1")
		if strings.HasPrefix(r.URL.Path, "/fail") {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = w.Write(encoded)
	})
	auths := map[string]*pipeline.Auth{
		"bearer":           {Kind: pipeline.AuthBearer, Secret: "ERP key"},
		"basic":            {Kind: pipeline.AuthBasic, Secret: "ERP key", User: "kim"},
		"key in header":    {Kind: pipeline.AuthAPIKey, Secret: "ERP key"},
		"key in own":       {Kind: pipeline.AuthAPIKey, Secret: "ERP key", Header: "X-Own"},
		"key in the query": {Kind: pipeline.AuthAPIKey, Secret: "ERP key", Query: "key"},
		"header":           nil,
	}
	for name, auth := range auths {
		for _, as := range []pipeline.AnswerAs{pipeline.AnswerJSON, pipeline.AnswerText, pipeline.AnswerFile} {
			input := engine.HTTPInput{URL: "/echo?x=1", Auth: auth, Answer: as}
			if auth == nil {
				input.Secret = []pipeline.Header{{Name: "X-Secret", Secret: "ERP key"}}
			}
			reply := d.call(input)
			require.Nil(t, reply.Failure, name)
			require.Contains(t, seen.Load(), "0123456789", "%s: it was sent", name)
			requireMasked(t, string(reply.Output))
			require.Contains(t, string(reply.Output), "[secret ERP key]", name)
			require.NotContains(t, string(reply.Output), "session=1")
			for _, file := range reply.Files {
				requireMasked(t, string(file.Bytes))
			}
			input.URL = "/fail"
			reply = d.call(input)
			require.NotNil(t, reply.Failure)
			requireMasked(t, reply.Failure.Message+reply.Failure.Detail)
			require.Contains(t, reply.Failure.Detail, "HTTP 400")
		}
	}
}

func requireMasked(t *testing.T, text string) {
	t.Helper()
	for _, spelling := range []string{keyValue, "0123456789", url.QueryEscape(keyValue), base64.StdEncoding.EncodeToString([]byte(keyValue)), base64.StdEncoding.EncodeToString([]byte("kim:" + keyValue))} {
		require.NotContains(t, text, spelling)
	}
}

func TestSecretsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	d := newDesk(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	for name, words := range map[string]string{"gone": "no secret “gone” any more", "bound": "may not be sent to 127.0.0.1"} {
		reply := d.call(engine.HTTPInput{URL: "/", Auth: &pipeline.Auth{Kind: pipeline.AuthBearer, Secret: name}})
		require.Equal(t, "no_secret", reply.Failure.Class)
		require.Contains(t, reply.Failure.Message, words)
		require.False(t, reply.Retryable)
	}
	require.Zero(t, hits.Load(), "nothing was sent")
}

// The token is fetched once, kept in memory, used until the other side does not take it any
// more, and then fetched anew.
func TestOAuth2ClientCredentials(t *testing.T) {
	t.Parallel()
	var fetched, called atomic.Int64
	d := newDesk(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			user, password, _ := r.BasicAuth()
			password, _ = url.QueryUnescape(password)
			if r.PostFormValue("grant_type") != "client_credentials" || r.PostFormValue("scope") != "orders" || user != "client" || password != keyValue {
				http.Error(w, `{"error": "invalid_client"}`, http.StatusUnauthorized)
				return
			}
			_, _ = fmt.Fprintf(w, `{"access_token": "token-number-%d", "expires_in": 3600}`, fetched.Add(1))
			return
		}
		called.Add(1)
		if r.Header.Get("Authorization") != fmt.Sprintf("Bearer token-number-%d", fetched.Load()) || called.Load() == 3 {
			http.Error(w, "token ran out", http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprintf(w, `{"you sent": %q}`, r.Header.Get("Authorization"))
	})
	auth := &pipeline.Auth{Kind: pipeline.AuthOAuth2, Secret: "ERP key", User: "client", Scope: "orders", TokenURL: d.url + "/token"}
	for range 3 {
		reply := d.call(engine.HTTPInput{URL: "/", Auth: auth})
		require.Nil(t, reply.Failure)
		require.NotContains(t, string(reply.Output), "token-number")
	}
	require.EqualValues(t, 2, fetched.Load(), "one at first, one where it had run out")
	require.EqualValues(t, 4, called.Load())

	wrong := *auth
	wrong.User = "other"
	reply := d.call(engine.HTTPInput{URL: "/", Method: "POST", Auth: &wrong})
	require.Equal(t, "auth", reply.Failure.Class)
	require.False(t, reply.Retryable || reply.Unsure, "nothing was sent, and another try would not help")
	requireMasked(t, reply.Failure.Message+reply.Failure.Detail)
}

func TestRequestsAreSentAsTheStepSays(t *testing.T) {
	t.Parallel()
	type sent struct {
		Method, Path, Query, Body string
		Header                    http.Header
	}
	var last sent
	d := newDesk(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		last = sent{r.Method, r.URL.Path, r.URL.RawQuery, string(body), r.Header}
		w.WriteHeader(http.StatusNoContent)
	})
	body := `{"order":9007199254740993}`
	reply := d.call(engine.HTTPInput{Method: "PUT", URL: "/orders/a%2Fb?x=1&y", Query: []engine.HTTPParam{{Name: "q", Value: "a&b"}},
		Headers: []engine.HTTPParam{{Name: "X-Run", Value: "1"}}, Body: &body, Type: "application/json", KeyHeader: "X-Key", Answer: pipeline.AnswerJSON})
	require.Nil(t, reply.Failure)
	require.JSONEq(t, `{"status": 204, "body": null}`, withoutHeaders(t, reply.Output))
	require.Equal(t, []string{"PUT", "/orders/a/b", "x=1&y&q=a%26b", body}, []string{last.Method, last.Path, last.Query, last.Body})
	require.Equal(t, "the-key", last.Header.Get("X-Key"))
	require.Equal(t, "application/json", last.Header.Get("Content-Type"))
	for _, address := range []string{"/orders/../admin", "/a/%2e%2e/b"} {
		reply := d.call(engine.HTTPInput{URL: address})
		require.Equal(t, "bad_address", reply.Failure.Class, address)
	}
	reply = d.call(engine.HTTPInput{URL: "/", Headers: []engine.HTTPParam{{Name: "X-Run", Value: "1\r\nX-Evil: 2"}}})
	require.Contains(t, reply.Failure.Message, "line break")
}

func withoutHeaders(t *testing.T, output []byte) string {
	t.Helper()
	var value map[string]any
	require.NoError(t, json.Unmarshal(output, &value))
	delete(value, "headers")
	encoded, err := json.Marshal(value)
	require.NoError(t, err)
	return string(encoded)
}

func TestAnswersAreReadAsTheStepSays(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/json":
			_, _ = io.WriteString(w, `{"order": 9007199254740993, "sum": 0.10}`)
		case "/text":
			_, _ = io.WriteString(w, "a\x00b \xff")
		case "/report":
			w.Header().Set("Content-Type", "application/pdf")
			w.Header().Set("Content-Disposition", `attachment; filename="../../Q3 report.pdf"`)
			_, _ = io.WriteString(w, "%PDF-1.7")
		case "/list.csv":
			_, _ = io.WriteString(w, "a,b\n1,2\n")
		}
	})
	reply := d.call(engine.HTTPInput{URL: "/json", Answer: pipeline.AnswerJSON})
	require.Contains(t, string(reply.Output), `9007199254740993`)
	require.Contains(t, string(reply.Output), `0.10`)
	reply = d.call(engine.HTTPInput{URL: "/text", Answer: pipeline.AnswerText})
	require.Contains(t, string(reply.Output), "a\uFFFDb \uFFFD")
	reply = d.call(engine.HTTPInput{URL: "/report", Answer: pipeline.AnswerFile})
	require.Nil(t, reply.Failure)
	require.Contains(t, string(reply.Output), `"name":"Q3 report.pdf"`)
	require.Contains(t, string(reply.Output), engine.DigestOf([]byte("%PDF-1.7")).String())
	require.Equal(t, "%PDF-1.7", string(reply.Files[0].Bytes))
	reply = d.call(engine.HTTPInput{URL: "/list.csv", Answer: pipeline.AnswerFile})
	require.Contains(t, string(reply.Output), `"columns":["a","b"]`)
}
