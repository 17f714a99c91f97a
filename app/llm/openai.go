package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"
)

// OpenAIBaseURL is where OpenAI itself answers.
const OpenAIBaseURL = "https://api.openai.com/v1"

// DefaultCallTimeout bounds a call from the first byte sent to the last read.
const DefaultCallTimeout = 10 * time.Minute

// askJSON precedes the schema in the instructions for servers without schema mode.
const askJSON = "\n\nAnswer with one JSON object that fits the following JSON Schema, and with nothing else:\n"

// KeySource yields the API key at the time of the call, so that a rotated key
// counts at once. An empty key sends none, for local servers.
type KeySource func(ctx context.Context) (string, error)

// FixedKey is the KeySource of one key.
func FixedKey(key string) KeySource {
	return func(context.Context) (string, error) { return key, nil }
}

// OpenAIConfig sets up the adapter for OpenAI and servers that speak its format.
type OpenAIConfig struct {
	// BaseURL is the address up to and including the version, without
	// "/chat/completions"; empty means OpenAIBaseURL.
	BaseURL string
	// Key yields the API key; nil sends none.
	Key KeySource
	// HTTP makes the calls: for an address that a user chose, the guarded client of
	// app/outbound, with a time limit of at least Timeout. Required.
	HTTP *http.Client
	// OldTokenLimit sends the limit as max_tokens, for servers that do not know
	// max_completion_tokens. The cap on money depends on the server's keeping it.
	OldTokenLimit bool
	// NoSchemaMode asks for the fields by instruction, for servers that do not take
	// a JSON schema as response format.
	NoSchemaMode bool
	// Timeout bounds a call; 0 means DefaultCallTimeout.
	Timeout time.Duration
	// Now is the clock for waits given as a date; nil means time.Now.
	Now func() time.Time
}

// OpenAI asks an OpenAI-compatible server by chat completions. It is safe for
// concurrent use.
type OpenAI struct {
	cfg  OpenAIConfig
	host string // for messages
	chat openai.ChatCompletionService
}

// NewOpenAI makes the adapter. The error names the part of the set-up that is
// wrong.
func NewOpenAI(cfg OpenAIConfig) (*OpenAI, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = OpenAIBaseURL
	}
	base, err := url.Parse(cfg.BaseURL)
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" {
		return nil, errors.New("llm: the base URL of the model server must look like https://host/v1")
	}
	if base.User != nil || base.RawQuery != "" {
		return nil, errors.New("llm: the base URL of the model server must hold no password and no query")
	}
	if cfg.HTTP == nil {
		return nil, errors.New("llm: the model server's HTTP client is not set")
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
	// The service is made without the client around it: that one reads keys,
	// organisation and headers from the environment, which belong to nobody here.
	// The library's own retries would spend money outside every cap.
	chat := openai.NewChatCompletionService(
		option.WithBaseURL(cfg.BaseURL), option.WithHTTPClient(cfg.HTTP), option.WithMaxRetries(0))
	return &OpenAI{cfg: cfg, host: base.Hostname(), chat: chat}, nil
}

// Call implements Provider.
func (o *OpenAI) Call(ctx context.Context, req Request) (Answer, error) {
	key, err := o.cfg.Key(ctx)
	if err != nil {
		return Answer{}, &Error{Class: ClassAuth, cause: err,
			Message: "The key for " + o.host + " cannot be read. Enter it again in the workspace's provider keys."}
	}
	ctx, cancel := context.WithTimeout(ctx, o.cfg.Timeout)
	defer cancel()
	call := &openAICall{host: o.host, key: key, req: req, now: o.cfg.Now}
	return call.run(ctx, o.chat, o.params(req), o.options(call)...)
}

// params is the request body. max tokens, and usage at the end of the stream, are
// always asked for.
func (o *OpenAI) params(req Request) openai.ChatCompletionNewParams {
	instructions := req.Instructions
	params := openai.ChatCompletionNewParams{
		Model:         req.Model,
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
	}
	switch {
	case req.Answer == nil:
	case o.cfg.NoSchemaMode:
		instructions += askJSON + string(req.Answer.JSON())
	default:
		params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
				Name: "answer", Strict: param.NewOpt(true), Schema: json.RawMessage(req.Answer.StrictJSON()),
			}}
	}
	if instructions != "" {
		params.Messages = append(params.Messages, openai.SystemMessage(instructions))
	}
	params.Messages = append(params.Messages, openai.UserMessage(req.Prompt))
	if o.cfg.OldTokenLimit {
		params.MaxTokens = param.NewOpt(req.MaxTokens)
	} else {
		params.MaxCompletionTokens = param.NewOpt(req.MaxTokens)
	}
	return params
}

func (o *OpenAI) options(call *openAICall) []option.RequestOption {
	opts := []option.RequestOption{option.WithMiddleware(call.watch)}
	if call.key != "" {
		opts = append(opts, option.WithAPIKey(call.key))
	}
	if call.req.Key != "" {
		opts = append(opts, option.WithHeader("Idempotency-Key", call.req.Key))
	}
	return opts
}

// OpenAIEntry is the registry entry of an adapter under a prefix of the operator's
// choice; models are listed by the server's own ids.
func OpenAIEntry(prefix string, provider *OpenAI, ids ...string) Entry {
	entry := Entry{Prefix: prefix, Provider: provider}
	for _, id := range ids {
		entry.Models = append(entry.Models, Model{ID: prefix + "/" + id, Name: displayName(id)})
	}
	return entry
}

// displayName is what people read; the shipped models have names, any other shows
// its id.
func displayName(id string) string {
	if name, ok := shippedNames[id]; ok {
		return name
	}
	return id
}

var shippedNames = map[string]string{
	"gpt-5.6-terra": "GPT-5.6 Terra",
	"gpt-6-astra":   "GPT-6 Astra",
}

var _ fmt.Stringer = (*OpenAI)(nil)

// String names the adapter without its key.
func (o *OpenAI) String() string { return "OpenAI-compatible server at " + o.host }
