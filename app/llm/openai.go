package llm

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"
)

// OpenAIBaseURL is where OpenAI itself answers.
const OpenAIBaseURL = "https://api.openai.com/v1"

// OpenAI asks OpenAI, or a server that speaks its format, by chat completions. It is
// safe for concurrent use.
type OpenAI struct {
	endpoint
	chat openai.ChatCompletionService
}

// NewOpenAI makes the adapter. The error names the part of the set-up that is
// wrong.
func NewOpenAI(cfg Config) (*OpenAI, error) {
	e, err := newEndpoint(cfg, OpenAIBaseURL)
	if err != nil {
		return nil, err
	}
	// The service is made without the client around it: that one reads keys,
	// organisation and headers from the environment, which belong to nobody here.
	// The library's own retries would spend money outside every cap.
	return &OpenAI{endpoint: e, chat: openai.NewChatCompletionService(option.WithMaxRetries(0))}, nil
}

// Call implements Provider.
func (o *OpenAI) Call(ctx context.Context, req Request) (Answer, error) {
	x, err := o.open(ctx, req, &openAIDialect)
	if err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.cfg.Timeout)
	defer cancel()
	return run(ctx, x, sseStream[openai.ChatCompletionChunk]{o.chat.NewStreaming(ctx, o.params(req), o.options(x)...)}, addOpenAI)
}

// params is the request body. max tokens, and usage at the end of the stream, are
// always asked for. What stays the same from call to call comes first, since the
// provider keeps the beginnings of prompts by itself.
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
	params.Messages = append(params.Messages, openAIPrompt(req))
	if o.cfg.OldTokenLimit {
		params.MaxTokens = param.NewOpt(req.MaxTokens)
	} else {
		params.MaxCompletionTokens = param.NewOpt(req.MaxTokens)
	}
	return params
}

// openAIPrompt is the question with its files.
func openAIPrompt(req Request) openai.ChatCompletionMessageParamUnion {
	if len(req.Files) == 0 {
		return openai.UserMessage(req.Prompt)
	}
	var parts []openai.ChatCompletionContentPartUnionParam
	for _, file := range req.Files {
		switch file.kind() {
		case fileImage:
			parts = append(parts, openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: file.dataURL()}))
		case filePDF:
			parts = append(parts, openai.FileContentPart(openai.ChatCompletionContentPartFileFileParam{
				FileData: param.NewOpt(file.dataURL()), Filename: param.NewOpt(file.title())}))
		case fileText, fileUnknown:
			parts = append(parts, openai.TextContentPart(file.asText()))
		}
	}
	return openai.UserMessage(append(parts, openai.TextContentPart(req.Prompt)))
}

func (o *OpenAI) options(x *exchange) []option.RequestOption {
	opts := []option.RequestOption{option.WithBaseURL(x.base.url), option.WithHTTPClient(x)}
	if x.secret != "" {
		opts = append(opts, option.WithAPIKey(x.secret))
	}
	if x.req.Key != "" {
		opts = append(opts, option.WithHeader("Idempotency-Key", x.req.Key))
	}
	return opts
}

// OpenAIEntry is the registry entry of an adapter under a prefix of the operator's
// choice; models are listed by the server's own ids.
func OpenAIEntry(prefix string, provider *OpenAI, ids ...string) Entry {
	return entryOf(prefix, provider, openAIModels, ids)
}

// openAIModels are the facts of the shipped models.
var openAIModels = map[string]Model{
	"gpt-5.6-terra": {Name: "GPT-5.6 Terra", TakesFiles: true, MaxOutput: 128_000, ContextTokens: 1_050_000},
	"gpt-6-astra":   {Name: "GPT-6 Astra", TakesFiles: true},
}

var _ fmt.Stringer = (*OpenAI)(nil)

// String names the adapter without its key.
func (o *OpenAI) String() string { return "OpenAI-compatible server at " + o.base.host }
