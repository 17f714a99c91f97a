package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tollgate/tenants"
)

// Config is all that comes from the environment. Every problem names its variable.
type Config struct {
	DatabaseURL       string        // DATABASE_URL
	SystemDatabaseURL string        // TOLLGATE_SYSTEM_DATABASE_URL: login of the system role; empty means DATABASE_URL
	OwnerDatabaseURL  string        // TOLLGATE_OWNER_DATABASE_URL: login that migrates; empty means DATABASE_URL
	Secret            []byte        // TOLLGATE_SECRET: 64 hexadecimal digits, from which links and codes are derived
	EarlierSecrets    [][]byte      // TOLLGATE_SECRET_OLD: what TOLLGATE_SECRET was before, apart by commas, until tollgate rewrap has run
	Addr              string        // TOLLGATE_ADDR: where to listen; default :8080
	BaseURL           string        // TOLLGATE_BASE_URL: as people reach the pages, such as https://tollgate.example.com
	ClientIP          string        // TOLLGATE_CLIENT_IP: the header in which the proxy in front gives the browser's address, such as Fly-Client-IP
	SMTPURL           string        // TOLLGATE_SMTP_URL: smtp://user:password@host:port
	MailFrom          string        // TOLLGATE_MAIL_FROM: the address that mails come from
	OpenAI            provider      // OPENAI_API_KEY and so on
	Anthropic         provider      // ANTHROPIC_API_KEY and so on
	Gemini            provider      // GEMINI_API_KEY and so on
	RateLimits        rateLimits    // TOLLGATE_RATE_LIMITS: how fast the keys above are used, such as openai=500/60000,openai/gpt-5.6-terra=100/20000: calls and tokens a minute of each model, 0 for no limit; default no limits
	Operators         []string      // TOLLGATE_OPERATORS: e-mail addresses of those who run the installation and may see its page, apart by commas; default nobody
	OutboundAllow     []string      // TOLLGATE_OUTBOUND_ALLOW: private host:port that may be called, apart by commas
	Slices            int           // TOLLGATE_SLICES: branches of runs driven at once; default 100
	Drain             time.Duration // TOLLGATE_DRAIN: how long calls under way may go on after a stop; default 60s
}

// load reads the environment and checks each variable by itself. Which of them are
// needed depends on the command.
func load(getenv func(string) string) (Config, error) {
	c := Config{
		DatabaseURL:       getenv("DATABASE_URL"),
		SystemDatabaseURL: getenv("TOLLGATE_SYSTEM_DATABASE_URL"),
		OwnerDatabaseURL:  getenv("TOLLGATE_OWNER_DATABASE_URL"),
		Addr:              getenv("TOLLGATE_ADDR"),
		BaseURL:           strings.TrimRight(getenv("TOLLGATE_BASE_URL"), "/"),
		ClientIP:          getenv("TOLLGATE_CLIENT_IP"),
		SMTPURL:           getenv("TOLLGATE_SMTP_URL"),
		MailFrom:          getenv("TOLLGATE_MAIL_FROM"),
		OutboundAllow:     list(getenv("TOLLGATE_OUTBOUND_ALLOW")),
	}
	var problems []error
	note := func(variable string, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("%s %w", variable, err))
		}
	}
	var err error
	c.Secret, err = secretFrom(getenv("TOLLGATE_SECRET"))
	note("TOLLGATE_SECRET", err)
	for _, part := range list(getenv("TOLLGATE_SECRET_OLD")) {
		earlier, err := secretFrom(part)
		note("TOLLGATE_SECRET_OLD", err)
		c.EarlierSecrets = append(c.EarlierSecrets, earlier)
	}
	c.Slices, err = number(getenv("TOLLGATE_SLICES"))
	note("TOLLGATE_SLICES", err)
	c.Drain, err = pause(getenv("TOLLGATE_DRAIN"))
	note("TOLLGATE_DRAIN", err)
	c.OpenAI = readProvider("OPENAI", getenv, note)
	c.OpenAI.oldTokenLimit, err = yes(getenv("OPENAI_OLD_TOKEN_LIMIT"))
	note("OPENAI_OLD_TOKEN_LIMIT", err)
	c.Anthropic = readProvider("ANTHROPIC", getenv, note)
	c.Gemini = readProvider("GEMINI", getenv, note)
	c.Operators, err = addresses(getenv("TOLLGATE_OPERATORS"))
	note("TOLLGATE_OPERATORS", err)
	c.RateLimits, err = rateLimitsFrom(getenv("TOLLGATE_RATE_LIMITS"))
	note("TOLLGATE_RATE_LIMITS", err)
	note("TOLLGATE_BASE_URL", checkBaseURL(c.BaseURL))
	note("DATABASE_URL", checkDatabaseURL(c.DatabaseURL))
	note("TOLLGATE_SYSTEM_DATABASE_URL", checkDatabaseURL(c.SystemDatabaseURL))
	note("TOLLGATE_OWNER_DATABASE_URL", checkDatabaseURL(c.OwnerDatabaseURL))
	return c, errors.Join(problems...)
}

// forServing checks what a production process cannot do without.
func (c *Config) forServing() error {
	var problems []error
	for _, needed := range []struct{ variable, value, what string }{
		{"DATABASE_URL", c.DatabaseURL, "postgres://user:password@host:5432/database"},
		{"TOLLGATE_SECRET", string(c.Secret), "64 random hexadecimal digits, the same for all processes"},
		{"TOLLGATE_BASE_URL", c.BaseURL, "the address of the pages, such as https://tollgate.example.com"},
		{"TOLLGATE_SMTP_URL", c.SMTPURL, "the mail server, such as smtp://user:password@host:587"},
		{"TOLLGATE_MAIL_FROM", c.MailFrom, "the address that mails come from"},
	} {
		if needed.value == "" {
			problems = append(problems, fmt.Errorf("%s is not set; it should hold %s", needed.variable, needed.what))
		}
	}
	if c.Addr == "" {
		c.Addr = ":8080"
	}
	return errors.Join(problems...)
}

// LogValue prints the configuration without its secrets.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("addr", c.Addr), slog.String("base_url", c.BaseURL), slog.Int("slices", c.Slices),
		slog.Duration("drain", c.Drain), slog.Bool("smtp", c.SMTPURL != ""), slog.Bool("openai", c.OpenAI.set()),
		slog.Bool("anthropic", c.Anthropic.set()), slog.Bool("gemini", c.Gemini.set()),
	)
}

func list(text string) []string {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// addresses reads e-mail addresses as people sign in with them.
func addresses(text string) ([]string, error) {
	var out []string
	for _, part := range list(text) {
		address, err := tenants.ParseEmail(part)
		if err != nil {
			return nil, fmt.Errorf("should be e-mail addresses apart by commas, and one is %q", part)
		}
		out = append(out, address)
	}
	return out, nil
}

func secretFrom(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	secret, err := hex.DecodeString(text)
	if err != nil || len(secret) < 32 {
		return nil, errors.New("should be at least 64 hexadecimal digits, such as those of: openssl rand -hex 32")
	}
	return secret, nil
}

func number(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 10_000 {
		return 0, fmt.Errorf("should be a number from 1 to 10000, and is %q", text)
	}
	return n, nil
}

func pause(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > 10*time.Minute {
		return 0, fmt.Errorf("should be a time from 0s to 10m, and is %q", text)
	}
	return d, nil
}

func yes(text string) (bool, error) {
	switch text {
	case "yes":
		return true, nil
	case "", "no":
		return false, nil
	}
	return false, fmt.Errorf("should be yes or no, and is %q", text)
}

func checkBaseURL(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.Path != "" {
		return errors.New("should look like https://tollgate.example.com, without a path")
	}
	return nil
}

// checkDatabaseURL never repeats the URL, which may hold a password.
func checkDatabaseURL(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return errors.New("should look like postgres://user:password@host:5432/database")
	}
	return nil
}
