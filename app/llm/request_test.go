package llm_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/llm"
)

// TestCredential: a key given with the request replaces the configured one, and with an
// address of its own it goes there, alone.
func TestCredential(t *testing.T) {
	t.Parallel()
	other := fakellm.New(1)
	web := httptest.NewServer(other)
	t.Cleanup(func() { other.Close(); web.Close() })
	guarded, err := llm.NewHTTP(web.Listener.Addr().String())
	require.NoError(t, err)
	b := setup(t, func(cfg *llm.Config) { cfg.TenantHTTP = guarded })

	req := ask()
	req.Credential = llm.Credential{Secret: "sk-own"}
	_, err = b.call(t, req)
	require.NoError(t, err)
	require.Equal(t, "Bearer sk-own", b.server.Seen()[0].Authorization)

	req.Credential.BaseURL = web.URL + "/v1"
	answer, err := b.call(t, req)
	require.NoError(t, err)
	require.Len(t, b.server.Seen(), 1)
	require.Equal(t, "Bearer sk-own", other.Seen()[0].Authorization)
	require.NotContains(t, string(answer.Sent), "sk-own")

	req.Credential.Secret = ""
	_, err = b.call(t, req)
	require.NoError(t, err)
	require.Empty(t, other.Seen()[1].Authorization, "the configured key must not travel to an address of a workspace")
	req.Model = "openai/house-model-7"
	_, err = b.call(t, req)
	require.NoError(t, err, "a server of one's own has models of its own")
	require.Equal(t, "house-model-7", other.Seen()[2].Model)
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", req, req, req.Credential), "sk-own")
}

// TestCredentialAddresses: what a workspace may not call is refused before anything is
// sent, whether or not the installation itself may call it.
func TestCredentialAddresses(t *testing.T) {
	t.Parallel()
	guarded, err := llm.NewHTTP()
	require.NoError(t, err)
	b := setup(t, func(cfg *llm.Config) { cfg.TenantHTTP = guarded })
	closed := setup(t, nil)
	for _, address := range []string{
		"http://127.0.0.1:1/v1", "https://169.254.169.254/v1", "https://[::1]/v1", "https://localhost/v1", "ftp://example.com", "example.com",
		"https://user:pass@example.com/v1", "https://example.com/v1?x=1", "file:///etc/passwd", "https://10.0.0.1/v1",
	} {
		req := ask()
		req.Credential = llm.Credential{Secret: "sk-own", BaseURL: address}
		for _, room := range []*bundle{b, closed} {
			_, err := room.call(t, req)
			var fault *llm.Error
			require.ErrorAs(t, err, &fault, address)
			require.False(t, fault.Dispatched, address)
			require.NotContains(t, err.Error(), "sk-own")
			require.Empty(t, room.server.Seen())
		}
	}
}

func TestNoKeyAnywhere(t *testing.T) {
	t.Parallel()
	b := setup(t, func(cfg *llm.Config) { cfg.Key, cfg.NeedsKey = nil, true })
	_, err := b.call(t, ask())
	var fault *llm.Error
	require.ErrorAs(t, err, &fault)
	require.Equal(t, llm.ClassAuth, fault.Class)
	require.True(t, fault.Terminal)
	require.False(t, fault.Dispatched)
	require.Contains(t, fault.Message, "provider keys")
	require.Empty(t, b.server.Seen())
}

// TestLive: the pieces add up to the answer, each is whole characters, and a refusal
// or an error ends them.
func TestLive(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	turns := map[string]fakellm.Turn{
		"plain":  {Text: "It is a complaint about a late train."},
		"halves": {Pieces: []string{`"well \ud83d"`, `"\ude00 \\ud83d"`, `"\\"`, `"\\\\"`, `"ud83d \u0000"`, `"a"`}},
		"whole":  {Text: "in one piece", Whole: true},
	}
	for name, turn := range turns {
		b.server.Play(turn)
		var live strings.Builder
		req := ask()
		req.Live = func(text string) {
			require.NotEmpty(t, text)
			live.WriteString(text)
		}
		answer, err := b.call(t, req)
		require.NoError(t, err, name)
		require.Equal(t, answer.Text, live.String(), name)
	}
	var said []string
	req := ask()
	req.Live = func(text string) { said = append(said, text) }
	b.server.Play(fakellm.Turn{Text: "half of the answer", CutAfter: 2})
	_, err := b.call(t, req)
	require.Error(t, err)
	require.Equal(t, []string{"half", " of "}, said)
}

// TestSent: the body as it went out, also of a call that failed.
func TestSent(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	answer, err := b.call(t, ask())
	require.NoError(t, err)
	require.Equal(t, b.server.Seen()[0].Body, answer.Sent)
	for _, turn := range []fakellm.Turn{{Status: 500}, {Text: "half", CutAfter: 1}, {Blank: true}} {
		fault := b.fault(t, ask(), turn)
		require.Equal(t, b.server.Seen()[0].Body, fault.Answer.Sent)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	header := map[string]string{
		"X-RateLimit-Limit-Requests": "500", "X-RateLimit-Remaining-Requests": "0", "X-RateLimit-Limit-Tokens": "60000",
		"X-RateLimit-Remaining-Tokens": "59870", "X-RateLimit-Reset-Requests": "120ms", "X-RateLimit-Reset-Tokens": "6m0s",
	}
	b.server.Play(fakellm.Turn{Header: header})
	answer, err := b.call(t, ask())
	require.NoError(t, err)
	want := llm.Limits{Requests: ptr(500), RequestsLeft: ptr(0), Tokens: ptr(60000), TokensLeft: ptr(59870), Reset: 6 * time.Minute}
	require.Equal(t, want, answer.Limits)
	header["Retry-After"] = "2"
	require.Equal(t, want, b.fault(t, ask(), fakellm.Turn{Status: 429, Header: header}).Limits)
	require.Equal(t, want, b.fault(t, ask(), fakellm.Turn{Blank: true, Header: header}).Limits)
	for _, bad := range []string{"-1", "x", "1e3", "99999999999999999999", ""} {
		b.server.Play(fakellm.Turn{Header: map[string]string{"X-RateLimit-Limit-Tokens": bad, "X-RateLimit-Reset-Tokens": bad}})
		answer, err := b.call(t, ask())
		require.NoError(t, err)
		require.Equal(t, llm.Limits{}, answer.Limits, bad)
	}
}

func ptr(n int64) *int64 { return &n }

// TestFilesThatAreNotSent: each is refused before the call, with the reason.
func TestFilesThatAreNotSent(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	png := llm.File{Name: "scan.png", MediaType: "image/png", Content: []byte("png")}
	for want, change := range map[string]func(*llm.Request){
		"does not take files": func(r *llm.Request) { r.Model, r.Files = "openai/local-model", []llm.File{png} },
		"is of a kind that": func(r *llm.Request) {
			r.Files = []llm.File{{Name: "a.exe", MediaType: "application/x-dosexec", Content: []byte("MZ")}}
		},
		"(image/svg+xml)": func(r *llm.Request) { r.Files = []llm.File{{MediaType: "image/svg+xml", Content: []byte("<svg/>")}} },
		"is empty":        func(r *llm.Request) { r.Files = []llm.File{{MediaType: "image/png"}} },
		"not in UTF-8":    func(r *llm.Request) { r.Files = []llm.File{{MediaType: "text/plain", Content: []byte{0xff}}} },
		"at most 20":      func(r *llm.Request) { r.Files = make([]llm.File, 21) },
		"more than 16 MB": func(r *llm.Request) {
			r.Files = []llm.File{{MediaType: "image/png", Content: make([]byte, llm.MaxFileBytes+1)}}
		},
	} {
		req := ask()
		change(&req)
		_, err := b.call(t, req)
		var fault *llm.Error
		require.ErrorAs(t, err, &fault, want)
		require.Equal(t, llm.ClassInvalidRequest, fault.Class)
		require.Contains(t, fault.Message, want)
		require.True(t, fault.Terminal)
	}
	require.Empty(t, b.server.Seen())
}
