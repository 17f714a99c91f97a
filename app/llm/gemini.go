package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/openai/openai-go/v3/packages/ssestream"
)

// GeminiBaseURL is where Google's Gemini models answer.
const GeminiBaseURL = "https://generativelanguage.googleapis.com"

// Gemini asks Google's Gemini models in their native format. It is safe for concurrent
// use.
//
// Its requests are written here and not by the firm's own library; docs/adr says why.
type Gemini struct{ endpoint }

// NewGemini makes the adapter. The error names the part of the set-up that is wrong.
func NewGemini(cfg Config) (*Gemini, error) {
	e, err := newEndpoint(cfg, GeminiBaseURL)
	if err != nil {
		return nil, err
	}
	return &Gemini{endpoint: e}, nil
}

// Call implements Provider.
func (g *Gemini) Call(ctx context.Context, req Request) (Answer, error) {
	x, err := g.open(ctx, req, &geminiDialect)
	if err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	res, err := g.send(ctx, x)
	if err != nil {
		return x.judge(ctx, &transcript{}, err)
	}
	decoder := ssestream.NewDecoder(res)
	return run(ctx, x, sseStream[geminiChunk]{ssestream.NewStream[geminiChunk](decoder, nil)}, addGemini)
}

// send makes the request. The key travels in a header: an address ends up in logs.
func (g *Gemini) send(ctx context.Context, x *exchange) (*http.Response, error) {
	body, err := json.Marshal(g.params(x.req))
	if err != nil {
		return nil, err
	}
	at := x.base.url + "/v1beta/models/" + url.PathEscape(x.req.Model) + ":streamGenerateContent?alt=sse"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if x.secret != "" {
		req.Header.Set("X-Goog-Api-Key", x.secret)
	}
	if x.req.Key != "" {
		req.Header.Set("Idempotency-Key", x.req.Key)
	}
	return x.Do(req)
}

// geminiAsk is a request's body.
type geminiAsk struct {
	SystemInstruction *geminiContent  `json:"systemInstruction,omitempty"`
	Contents          []geminiContent `json:"contents"`
	GenerationConfig  geminiConfig    `json:"generationConfig"`
}

type geminiContent struct {
	Role  string       `json:"role,omitempty"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text string      `json:"text,omitempty"`
	Data *geminiData `json:"inlineData,omitempty"`
}

type geminiData struct {
	MIMEType string `json:"mimeType"`
	Data     []byte `json:"data"` // sent in base 64
}

type geminiConfig struct {
	MaxOutputTokens    int64           `json:"maxOutputTokens"`
	ResponseMIMEType   string          `json:"responseMimeType,omitempty"`
	ResponseJSONSchema json.RawMessage `json:"responseJsonSchema,omitempty"`
}

// params is the request body. The limit of tokens holds for thinking and answer
// together. What stays the same comes first, since the provider caches by itself.
func (g *Gemini) params(req Request) geminiAsk {
	ask := geminiAsk{GenerationConfig: geminiConfig{MaxOutputTokens: req.MaxTokens}}
	instructions := req.Instructions
	switch {
	case req.Answer == nil:
	case g.cfg.NoSchemaMode:
		instructions += askJSON + string(req.Answer.JSON())
	default:
		ask.GenerationConfig.ResponseMIMEType = "application/json"
		ask.GenerationConfig.ResponseJSONSchema = req.Answer.PlainJSON()
	}
	if instructions != "" {
		ask.SystemInstruction = &geminiContent{Parts: []geminiPart{{Text: instructions}}}
	}
	var parts []geminiPart
	for _, file := range req.Files {
		switch file.kind() {
		case fileImage, filePDF:
			parts = append(parts, geminiPart{Data: &geminiData{MIMEType: file.media(), Data: file.Content}})
		case fileText, fileUnknown:
			parts = append(parts, geminiPart{Text: file.asText()})
		}
	}
	ask.Contents = []geminiContent{{Role: "user", Parts: append(parts, geminiPart{Text: req.Prompt})}}
	return ask
}

// GeminiEntry is the registry entry of an adapter; models are listed by the provider's
// own ids, under the name of the firm, as prices are.
func GeminiEntry(provider *Gemini, ids ...string) Entry {
	return entryOf("google", provider, geminiModels, ids)
}

// geminiModels are the facts of the shipped models.
var geminiModels = map[string]Model{
	"gemini-3.8-flash": {Name: "Gemini 3.8 Flash", TakesFiles: true, MaxOutput: 65_536, ContextTokens: 1_048_576},
}

var _ fmt.Stringer = (*Gemini)(nil)

// String names the adapter without its key.
func (g *Gemini) String() string { return "Gemini at " + g.base.host }
