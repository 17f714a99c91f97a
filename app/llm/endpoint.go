package llm

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tollgate/app/outbound"
)

// DefaultCallTimeout bounds a call from the first byte sent to the last read.
const DefaultCallTimeout = 10 * time.Minute

// KeySource yields the API key at the time of the call, so that a rotated key
// counts at once. An empty key sends none, for local servers.
type KeySource func(ctx context.Context) (string, error)

// FixedKey is the KeySource of one key.
func FixedKey(key string) KeySource {
	return func(context.Context) (string, error) { return key, nil }
}

// Config sets up the adapter for one provider, or for a server that speaks its format.
type Config struct {
	// BaseURL is the address without the paths that the format adds: for OpenAI's up
	// to and including the version, for the others without it. Empty means the
	// provider itself.
	BaseURL string
	// Name is what people read of the server; empty means its host.
	Name string
	// Key yields the API key; nil sends none.
	Key KeySource
	// NeedsKey refuses calls that have no key, before anything is sent. Servers of
	// one's own may need none.
	NeedsKey bool
	// HTTP makes the calls to BaseURL, with a time limit of at least Timeout. Required.
	HTTP *http.Client
	// TenantHTTP makes the calls to addresses that a Request's Credential gives, and
	// must be guarded by app/outbound. nil refuses such calls.
	TenantHTTP *http.Client
	// OldTokenLimit sends the limit as max_tokens, for servers of OpenAI's format
	// that do not know max_completion_tokens. The cap on money depends on the
	// server's keeping it.
	OldTokenLimit bool
	// NoSchemaMode asks for the fields by instruction, for servers and models that do
	// not take a JSON schema.
	NoSchemaMode bool
	// Timeout bounds a call; 0 means DefaultCallTimeout.
	Timeout time.Duration
	// Now is the clock for waits given as a date; nil means time.Now.
	Now func() time.Time
}

// endpoint is what all adapters have in common: where to call, and with which key.
type endpoint struct {
	cfg  Config
	base address
}

// address is a base URL that was checked.
type address struct {
	url  string
	host string // for messages
}

// newEndpoint checks and completes the set-up. The error names the part that is wrong.
func newEndpoint(cfg Config, provider string) (endpoint, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = provider
	}
	base, err := readAddress(cfg.BaseURL)
	if err != nil {
		return endpoint{}, errors.New("llm: the base URL of the model server " + err.Error())
	}
	if cfg.HTTP == nil {
		return endpoint{}, errors.New("llm: the model server's HTTP client is not set")
	}
	if cfg.Key == nil {
		cfg.Key = FixedKey("")
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultCallTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Name != "" {
		base.host = cfg.Name
	}
	return endpoint{cfg: cfg, base: base}, nil
}

func readAddress(text string) (address, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return address{}, errors.New("must look like https://host/v1")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return address{}, errors.New("must hold no password and no query")
	}
	return address{url: strings.TrimRight(text, "/"), host: u.Hostname()}, nil
}

// open begins a call: it finds the address, the client and the key that belong
// together. A key never goes to an address that it was not entered for.
func (e endpoint) open(ctx context.Context, req Request, d *dialect) (*exchange, error) {
	x := &exchange{dialect: d, req: req, now: e.cfg.Now, base: e.base, client: e.cfg.HTTP}
	var err error
	switch given := req.Credential; {
	case given == (Credential{}):
		if x.secret, err = e.cfg.Key(ctx); err != nil {
			return nil, &Error{Class: ClassAuth, cause: err,
				Message: "The key for " + e.base.host + " cannot be read. Enter it again in the workspace's provider keys."}
		}
	case given.BaseURL == "":
		x.secret = given.Secret
	default:
		x.secret, x.client = given.Secret, e.cfg.TenantHTTP
		if x.base, err = readAddress(given.BaseURL); err != nil {
			return nil, invalid("The address that belongs to the provider key " + err.Error() + ".")
		}
		if x.client == nil {
			return nil, invalid("Addresses of one's own cannot be called here.")
		}
	}
	if x.secret == "" && e.cfg.NeedsKey && x.base == e.base {
		return nil, &Error{Class: ClassAuth,
			Message: "There is no key for " + e.base.host + ". Enter one in the workspace's provider keys."}
	}
	return x, nil
}

// NewHTTP makes the guarded HTTP client that fits this package: limits as a long
// stream needs them, no redirects. allow names private model servers as host:port.
func NewHTTP(allow ...string) (*http.Client, error) {
	client, err := outbound.New(outbound.Config{Allow: allow, MaxBody: maxStreamBytes, Timeout: DefaultCallTimeout})
	if err != nil {
		return nil, err
	}
	return client.HTTP(), nil
}
