package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"tollgate/app/engine"
	"tollgate/app/outbound"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// HTTP makes the calls of "http" steps.
type HTTP struct {
	db     *tenants.DB
	vault  tenants.Vault
	client *outbound.Client
	tokens tokenStore
}

// maxRedirects is how many redirects of a call that only gets data are followed.
const maxRedirects = 5

// NewHTTP makes the caller. allow names private hosts with their ports that the operator
// lets steps call; the error names an entry that is no such.
func NewHTTP(db *tenants.DB, vault tenants.Vault, allow ...string) (*HTTP, error) {
	// How long a call may take is the step's to say; the context carries it.
	client, err := outbound.New(outbound.Config{
		Allow: allow, Redirects: maxRedirects, MaxBody: pipeline.MaxHTTPAnswer, Timeout: 24 * time.Hour,
	})
	if err != nil {
		return nil, err
	}
	return &HTTP{db: db, vault: vault, client: client}, nil
}

// Call makes the call once. Where an earlier try may have arrived and the step says how to
// look that up, it is looked up first.
func (h *HTTP) Call(ctx context.Context, call engine.Call) engine.Reply {
	c := httpCall{HTTP: h, call: call}
	if err := json.Unmarshal(call.Input, &c.input); err != nil {
		return engine.Reply{Failure: &engine.Failure{Class: engine.ClassInternal, Message: "The step's stored request cannot be read."}}
	}
	if reply := c.open(ctx); reply != nil {
		return *reply
	}
	note := ""
	if c.input.LookUp != nil && call.Attempt > 1 {
		found, reply := c.lookUp(ctx)
		if found {
			return reply
		}
		note = "We looked it up: the earlier try had not arrived, so it was sent again."
	}
	reply := c.send(ctx)
	if reply.Failure == nil && note != "" {
		reply.Note = note
	}
	return reply
}

// httpCall is one call under way, with the secrets it uses.
type httpCall struct {
	*HTTP
	call    engine.Call
	input   engine.HTTPInput
	secrets map[string]tenants.OpenedSecret
	file    []byte // that is sent
	masks   outbound.Masks
}

// sends tells whether the call may change something on the other side.
func (c *httpCall) sends() bool { return (&pipeline.HTTP{Method: c.input.Method}).Sends() }

// secretNames are the secrets that the call uses.
func (c *httpCall) secretNames() []string {
	return (&pipeline.HTTP{Headers: c.input.Secret, Auth: c.input.Auth}).Secrets()
}

// open reads the secrets and the file that the call needs; a reply says what is missing.
func (c *httpCall) open(ctx context.Context) *engine.Reply {
	if len(c.secretNames()) == 0 && c.input.File == nil {
		return nil
	}
	c.secrets = map[string]tenants.OpenedSecret{}
	missing := ""
	err := c.db.InTx(ctx, c.call.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		for _, missing = range c.secretNames() {
			secret, err := tenants.OpenSecret(ctx, tx, c.vault, missing)
			if err != nil {
				return err
			}
			c.secrets[missing] = secret
		}
		return c.openFile(ctx, tx)
	})
	for name, secret := range c.secrets {
		c.masks.Hide(name, secret.Value)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, tenants.ErrNoSecret):
		return refusal(classNoSecret, fmt.Sprintf("The workspace has no secret “%s” any more, so nothing was sent. An owner or admin can add it again.", missing))
	case errors.Is(err, tenants.ErrSealed):
		return refusal(classNoSecret, fmt.Sprintf("The secret “%s” cannot be opened, because the installation was given another key. An owner or admin must enter it again.", missing))
	case errors.Is(err, engine.ErrNoValue):
		return refusal(engine.ClassFormula, "The file to send is none of this run, so nothing was sent. Pick a file of the input or of an earlier step.")
	}
	return &engine.Reply{Retryable: true, Failure: &engine.Failure{Class: engine.ClassInternal,
		Message: "What the call needs could not be read just now, so nothing was sent."}}
}

func (c *httpCall) openFile(ctx context.Context, tx tenants.Tx) error {
	if c.input.File == nil {
		return nil
	}
	content, err := runFile(ctx, tx, c.call.Run, *c.input.File)
	c.file = content
	return err
}

// runFile reads a file that a run has; any other is ErrNoValue, whoever named it.
func runFile(ctx context.Context, tx tenants.Tx, run engine.RunID, file engine.FileRef) ([]byte, error) {
	digest, err := engine.ParseDigest(file.Digest)
	if err != nil {
		return nil, engine.ErrNoValue
	}
	content, err := engine.ValueOf(ctx, tx, run, digest)
	return content.Bytes, err
}

// refusal is a failure that another try would not mend.
func refusal(class, message string) *engine.Reply {
	return &engine.Reply{Failure: &engine.Failure{Class: class, Message: message}}
}

// send makes the call, and once more where a token has run out before its time: what was
// refused for it was not done.
func (c *httpCall) send(ctx context.Context) engine.Reply {
	got, reply := c.exchange(ctx, c.input.MaxBytes, c.request)
	if reply == nil && got.status == http.StatusUnauthorized && c.forgetToken() {
		got, reply = c.exchange(ctx, c.input.MaxBytes, c.request)
	}
	if reply != nil {
		return *reply
	}
	return c.judge(got)
}

// answer is what came back.
type answer struct {
	host   string
	url    string
	status int
	header http.Header
	body   []byte
	broken error // why the body is not whole
}

// exchange makes one request and reads at most most bytes of its answer; a reply says why
// there is none.
func (c *httpCall) exchange(ctx context.Context, most int64, build func(context.Context) (*http.Request, *engine.Reply)) (answer, *engine.Reply) {
	req, reply := build(ctx)
	if reply != nil {
		return answer{}, reply
	}
	res, err := c.client.Do(req)
	if err != nil {
		reply := c.noAnswer(err)
		return answer{}, &reply
	}
	defer func() { _ = res.Body.Close() }()
	got := answer{host: req.URL.Hostname(), url: res.Request.URL.Path, status: res.StatusCode, header: res.Header}
	got.body, got.broken = io.ReadAll(io.LimitReader(res.Body, most+1))
	if int64(len(got.body)) > most {
		got.body, got.broken = got.body[:most], errTooMuch
	}
	return got, nil
}

// errTooMuch tells of an answer beyond the step's own limit.
var errTooMuch = errors.New("the answer is larger than the step takes")
