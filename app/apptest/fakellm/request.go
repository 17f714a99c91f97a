package fakellm

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Seen is one request as it arrived.
type Seen struct {
	Format        string // "openai", "anthropic" or "gemini"
	Key           string // the idempotency key
	Authorization string
	APIKey        string // whichever header it came in
	Header        http.Header
	Model         string
	MaxTokens     int64
	TokenField    string // the name under which the limit came
	Stream        bool
	IncludeUsage  bool            // the final usage was asked for, or always comes
	Schema        json.RawMessage // nil without a schema
	System        string
	User          string
	Files         []string // "image/png", "application/pdf", in order
	CacheMarks    int      // places marked to be cached
	Body          []byte
}

// format is one provider's wire format.
type format interface {
	name() string
	// read reads a request and says what the real server would complain of; "" when it
	// would not.
	read(r *http.Request, body []byte) (Seen, string)
	// fail sends an error with a status.
	fail(w http.ResponseWriter, turn Turn)
	// whole is the answer in one piece.
	whole(r reply) any
	// writer sends the answer in pieces.
	writer(out *events, r reply) writer
	finishes(r reply) (done, cut string)
	usage(u figures) json.RawMessage
	// idHeader is the header that names the call.
	idHeader() string
}

// writer sends a stream, event by event.
type writer interface {
	begin()
	piece(quoted string)
	null()
	decline(text string)
	broken()
	fail(event string)
	end(finish string, usage json.RawMessage) // finish "" and usage nil are left out
	done()
}

// formatOf finds the format by the address; nil where no model answers.
func formatOf(r *http.Request) format {
	switch path := r.URL.Path; {
	case r.Method != http.MethodPost:
	case path == "/v1/chat/completions":
		return openAI{}
	case path == "/v1/messages":
		return anthropic{}
	case strings.HasPrefix(path, geminiPath) && strings.HasSuffix(path, ":streamGenerateContent"),
		strings.HasPrefix(path, geminiPath) && strings.HasSuffix(path, ":generateContent"):
		return gemini{}
	}
	return nil
}

// apiKey is the key of a request, whichever header it came in.
func apiKey(header http.Header) string {
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key"} {
		if key := header.Get(name); key != "" {
			return key
		}
	}
	return strings.TrimPrefix(header.Get("Authorization"), "Bearer ")
}

// size is what the model reads, in bytes; a file counts a thousand.
func (s Seen) size() int {
	return len(s.Schema) + len(s.System) + len(s.User) + 1000*len(s.Files)
}

// content is the content of a message: a text, or a list of parts.
type content struct {
	Texts []string
	Files []string
	Marks int
}

// part is a part of a message in OpenAI's or Anthropic's format.
type part struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL *struct {
		URL string `json:"url"`
	} `json:"image_url"`
	File *struct {
		Data string `json:"file_data"`
		Name string `json:"filename"`
	} `json:"file"`
	Source *struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`
	CacheControl *struct {
		Type string `json:"type"`
	} `json:"cache_control"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		c.Texts = append(c.Texts, text)
		return nil
	}
	var parts []part
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		c.take(p)
	}
	return nil
}

func (c *content) take(p part) {
	if p.CacheControl != nil {
		c.Marks++
	}
	switch {
	case p.ImageURL != nil:
		c.Files = append(c.Files, mediaOf(p.ImageURL.URL))
	case p.File != nil:
		c.Files = append(c.Files, mediaOf(p.File.Data))
	case p.Source != nil:
		c.Files = append(c.Files, p.Source.MediaType)
	default:
		c.Texts = append(c.Texts, p.Text)
	}
}

// mediaOf is the media type of an address that holds its data.
func mediaOf(dataURL string) string {
	media, _, _ := strings.Cut(strings.TrimPrefix(dataURL, "data:"), ";")
	return media
}
