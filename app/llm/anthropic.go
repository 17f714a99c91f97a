package llm

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
)

// AnthropicBaseURL is where Anthropic itself answers.
const AnthropicBaseURL = "https://api.anthropic.com"

const (
	// cacheFrom is the length of instructions in bytes from which they are marked to
	// be cached. Shorter ones are not cached by any model, and writing costs extra.
	cacheFrom = 4096
	// maxOptionals is how many optional fields the provider's schema mode takes.
	maxOptionals = 24
)

// Anthropic asks Anthropic, or a server that speaks its messages format. It is safe for
// concurrent use.
type Anthropic struct {
	endpoint
	messages anthropic.MessageService
}

// NewAnthropic makes the adapter. The error names the part of the set-up that is wrong.
func NewAnthropic(cfg Config) (*Anthropic, error) {
	e, err := newEndpoint(cfg, AnthropicBaseURL)
	if err != nil {
		return nil, err
	}
	// As with OpenAI's: the client around the service reads the environment.
	return &Anthropic{endpoint: e, messages: anthropic.NewMessageService(option.WithMaxRetries(0))}, nil
}

// Call implements Provider.
func (a *Anthropic) Call(ctx context.Context, req Request) (Answer, error) {
	x, err := a.open(ctx, req, &anthropicDialect)
	if err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Timeout)
	defer cancel()
	return run(ctx, x, anthropicStream{a.messages.NewStreaming(ctx, a.params(req), a.options(x)...)}, addAnthropic)
}

// params is the request body. The instructions are the part that stays the same from
// call to call; they stand first and are marked as the end of what may be cached.
func (a *Anthropic) params(req Request) anthropic.MessageNewParams {
	params := anthropic.MessageNewParams{Model: req.Model, MaxTokens: req.MaxTokens}
	instructions := req.Instructions
	switch {
	case req.Answer == nil:
	case a.cfg.NoSchemaMode || req.Answer.Optionals() > maxOptionals:
		instructions += askJSON + string(req.Answer.JSON())
	default:
		// Written by us, since a map would lose the order of the fields.
		params.OutputConfig.Format = param.Override[anthropic.JSONOutputFormatParam](
			json.RawMessage(`{"type":"json_schema","schema":` + string(req.Answer.PlainJSON()) + `}`))
	}
	if instructions != "" {
		block := anthropic.TextBlockParam{Text: instructions}
		if req.Cache && len(instructions) >= cacheFrom {
			block.CacheControl = anthropic.NewCacheControlEphemeralParam()
		}
		params.System = []anthropic.TextBlockParam{block}
	}
	var blocks []anthropic.ContentBlockParamUnion
	for _, file := range req.Files {
		blocks = append(blocks, anthropicFile(file))
	}
	blocks = append(blocks, anthropic.NewTextBlock(req.Prompt))
	params.Messages = []anthropic.MessageParam{anthropic.NewUserMessage(blocks...)}
	return params
}

func anthropicFile(file File) anthropic.ContentBlockParamUnion {
	switch file.kind() {
	case fileImage:
		return anthropic.NewImageBlockBase64(file.media(), file.base64())
	case filePDF:
		return anthropic.NewDocumentBlock(anthropic.Base64PDFSourceParam{Data: file.base64()})
	case fileText, fileUnknown:
	}
	return anthropic.NewTextBlock(file.asText())
}

func (a *Anthropic) options(x *exchange) []option.RequestOption {
	opts := []option.RequestOption{option.WithBaseURL(x.base.url), option.WithHTTPClient(x)}
	if x.secret != "" {
		opts = append(opts, option.WithAPIKey(x.secret))
	}
	if x.req.Key != "" {
		opts = append(opts, option.WithHeader("Idempotency-Key", x.req.Key))
	}
	return opts
}

// AnthropicEntry is the registry entry of an adapter; models are listed by the
// provider's own ids.
func AnthropicEntry(provider *Anthropic, ids ...string) Entry {
	return entryOf("anthropic", provider, anthropicModels, ids)
}

// anthropicModels are the facts of the shipped models.
var anthropicModels = map[string]Model{
	"claude-sonnet-5":  {Name: "Claude Sonnet 5", TakesFiles: true, MaxOutput: 128_000, ContextTokens: 1_000_000},
	"claude-fable-5-1": {Name: "Claude Fable 5.1", TakesFiles: true, MaxOutput: 128_000, ContextTokens: 1_000_000},
}

var _ fmt.Stringer = (*Anthropic)(nil)

// String names the adapter without its key.
func (a *Anthropic) String() string { return "Anthropic at " + a.base.host }
