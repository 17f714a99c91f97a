package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"tollgate/app/llm"
)

// provider is what the environment says of one model provider. Every variable begins
// with the provider's name, as in ANTHROPIC_API_KEY.
type provider struct {
	key           string   // …_API_KEY
	baseURL       string   // …_BASE_URL: of a server that speaks the provider's format
	models        []string // …_MODELS: model ids, apart by commas; default those with a known price
	noSchema      bool     // …_NO_SCHEMA: yes for a server that takes no JSON schema; the fields are then asked for in words; default no
	oldTokenLimit bool     // OPENAI_OLD_TOKEN_LIMIT: yes for a server that knows max_tokens only; default no
}

// set tells whether the installation itself can call the provider.
func (p provider) set() bool { return p.key != "" || p.baseURL != "" }

func readProvider(name string, getenv func(string) string, note func(variable string, err error)) provider {
	p := provider{key: getenv(name + "_API_KEY"), baseURL: getenv(name + "_BASE_URL"), models: list(getenv(name + "_MODELS"))}
	var err error
	p.noSchema, err = yes(getenv(name + "_NO_SCHEMA"))
	note(name+"_NO_SCHEMA", err)
	note(name+"_BASE_URL", checkModelURL(p.baseURL))
	return p
}

func checkModelURL(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("should look like https://host/path, without a password and a query")
	}
	return nil
}

// Models whose price is shipped in full.
var (
	defaultOpenAIModels    = []string{"gpt-5.6-terra"}
	defaultAnthropicModels = []string{"claude-sonnet-5"}
	defaultGeminiModels    = []string{"gemini-3.8-flash"}
)

// models are the practice model and those of every provider. Where the installation has
// no key of its own, they can be called with a workspace's key only.
func models(s settings) (*llm.Registry, error) {
	client, err := llm.NewHTTP(s.config.OutboundAllow...)
	if err != nil {
		return nil, fmt.Errorf("TOLLGATE_OUTBOUND_ALLOW: %w", err)
	}
	openAI, err := llm.NewOpenAI(s.config.OpenAI.adapter(client))
	if err != nil {
		return nil, fmt.Errorf("OPENAI_BASE_URL: %w", err)
	}
	anthropic, err := llm.NewAnthropic(s.config.Anthropic.adapter(client))
	if err != nil {
		return nil, fmt.Errorf("ANTHROPIC_BASE_URL: %w", err)
	}
	gemini, err := llm.NewGemini(s.config.Gemini.adapter(client))
	if err != nil {
		return nil, fmt.Errorf("GEMINI_BASE_URL: %w", err)
	}
	entries := []llm.Entry{
		llm.PracticeEntry(s.practice),
		s.config.OpenAI.offer(llm.OpenAIEntry("openai", openAI, s.config.OpenAI.ids(defaultOpenAIModels)...)),
		s.config.Anthropic.offer(llm.AnthropicEntry(anthropic, s.config.Anthropic.ids(defaultAnthropicModels)...)),
		s.config.Gemini.offer(llm.GeminiEntry(gemini, s.config.Gemini.ids(defaultGeminiModels)...)),
	}
	if s.fakes != "" {
		fakes, err := fakeEntry(s.fakes)
		if err != nil {
			return nil, err
		}
		entries = append(entries, fakes)
	}
	return llm.NewRegistry(entries...)
}

// adapter is the set-up of the provider's adapter. Addresses that a workspace gives are
// dialled through the same guard as the operator's own.
func (p provider) adapter(guarded *http.Client) llm.Config {
	return llm.Config{
		BaseURL: p.baseURL, Key: llm.FixedKey(p.key), NeedsKey: p.baseURL == "", HTTP: guarded, TenantHTTP: guarded,
		OldTokenLimit: p.oldTokenLimit, NoSchemaMode: p.noSchema,
	}
}

func (p provider) ids(shipped []string) []string {
	if len(p.models) > 0 {
		return p.models
	}
	return shipped
}

// offer marks what the installation itself cannot call.
func (p provider) offer(entry llm.Entry) llm.Entry {
	for i := range entry.Models {
		entry.Models[i].OwnKeyOnly = !p.set()
	}
	return entry
}
