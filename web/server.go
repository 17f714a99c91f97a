package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/labstack/echo/v4"

	"tollgate/app/engine"
	"tollgate/app/mail"
	"tollgate/app/review"
	"tollgate/tenants"
)

// Config is what the pages work with. DB, Engine, Reviews, Outbox, Secret, BaseURL and
// Log are required.
type Config struct {
	DB      *tenants.DB
	Engine  *engine.Engine
	Reviews *review.Room
	Outbox  *mail.Outbox
	Secret  tenants.Secret

	// Operators are the addresses of those who run the installation, in lower case. They
	// see its page, which shows no workspace's data but its name.
	Operators []string

	// Models are those that pipelines may ask, in the order of their set-up.
	Models []Model

	// KeyTrial tries keys at their providers; nil where none can be tried.
	KeyTrial KeyTrial

	// BaseURL is where browsers reach the server, without a path:
	// "https://tollgate.example.com".
	BaseURL string
	// Secure says that browsers come by https only. Cookies are bound to it.
	Secure bool
	// ClientIP is the header in which the proxy in front gives the browser's address,
	// such as "Fly-Client-IP". Empty without a proxy: a browser could set it itself.
	ClientIP string
	// Outdated tells whether the database still waits for migrations. nil means that
	// somebody else has checked.
	Outdated func(context.Context) (bool, error)
	// EarlierSecrets are what Secret was before: what they sealed can still be opened.
	EarlierSecrets []tenants.Secret
	// Local is set in local mode only.
	Local *Local
	Log   *slog.Logger
}

// Local is local mode: one can go on as one of the demo people, and read the mail that
// would have gone out. Both are for browsers on this computer, under one of its own
// names.
type Local struct {
	// Hosts are further names and ports, as in the Host header, under which this
	// computer may be called; its loopback names always are.
	Hosts []string
	// Break is what may be broken on purpose; nil offers nothing.
	Break *Breaking
}

// Server is the pages of the product.
type Server struct {
	Config
	vault    tenants.Vault
	origin   string // of BaseURL
	host     string // of BaseURL
	clock    func() time.Time
	sessions *scs.SessionManager
	origins  *http.CrossOriginProtection
	echo     *echo.Echo
	table    []route
	paces    *pace
	ending   context.Context // of the streams; see EndStreams
	end      context.CancelFunc
}

// New makes the pages, or says which setting is wrong.
func New(config Config) (*Server, error) {
	base, err := url.Parse(config.BaseURL)
	switch {
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.Path != "" && base.Path != "/":
		return nil, fmt.Errorf("the base URL %q must look like https://tollgate.example.com", config.BaseURL)
	case config.Secure && base.Scheme != "https":
		return nil, fmt.Errorf("the base URL %q must begin with https://, since cookies are sent by https only", config.BaseURL)
	case config.DB == nil || config.Engine == nil || config.Reviews == nil || config.Outbox == nil || config.Log == nil:
		return nil, errors.New("the pages need a database, an engine, the reviews, an outbox and a log")
	}
	vault, err := tenants.NewVault(config.Secret, config.EarlierSecrets...)
	if err != nil {
		return nil, err
	}
	s := &Server{
		Config: config, vault: vault, origin: base.Scheme + "://" + base.Host, host: base.Host, clock: time.Now,
		sessions: newSessions(config.DB, config.Secure), origins: http.NewCrossOriginProtection(), paces: paceOfForms(),
	}
	if err := s.origins.AddTrustedOrigin(s.origin); err != nil {
		return nil, fmt.Errorf("trust our own origin: %w", err)
	}
	s.ending, s.end = context.WithCancel(context.Background())
	s.table = s.routes()
	s.mount()
	return s, nil
}

// Handler answers all requests.
func (s *Server) Handler() http.Handler { return s.echo }
