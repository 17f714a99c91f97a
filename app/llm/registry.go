package llm

import (
	"fmt"
	"strings"

	"tollgate/app/llm/fields"
)

// Model is a model that pipelines may name.
type Model struct {
	ID       string // as in Request.Model: "openai/gpt-5.6-terra"
	Name     string // for people: "GPT-5.6 Terra"
	Practice bool   // needs no key and reads nothing
	// OwnKeyOnly tells that the installation has no key for the model, so that a
	// call needs a Request.Credential.
	OwnKeyOnly bool
	// TakesFiles tells that Request.Files may hold images, PDF and text.
	TakesFiles bool
	// MaxOutput is the most the model writes in one answer, ContextTokens the most it
	// reads and writes together; 0 where that is not known.
	MaxOutput, ContextTokens int64
}

// check refuses what this model does not take. The error is an *Error.
func (m Model) check(req Request) error {
	if len(req.Files) > 0 && !m.TakesFiles {
		return invalid(fmt.Sprintf("The model %s does not take files. Choose one that reads images and documents, or insert the text.", m.Name))
	}
	return nil
}

// Entry joins a provider to the registry.
type Entry struct {
	Prefix   string // the part of a model's id before the first slash
	Provider Provider
	Models   []Model
}

// entryOf lists models by the provider's own ids, with the facts that are shipped. A
// model without any shows its id.
func entryOf(prefix string, provider Provider, facts map[string]Model, ids []string) Entry {
	entry := Entry{Prefix: prefix, Provider: provider}
	for _, id := range ids {
		model := facts[id]
		model.ID = prefix + "/" + id
		if model.Name == "" {
			model.Name = id
		}
		entry.Models = append(entry.Models, model)
	}
	return entry
}

// Registry finds the provider of a model. It does not change after it is made,
// so it is safe for concurrent use.
type Registry struct {
	providers map[string]Provider // by prefix
	models    []Model
	known     map[string]int // index in models by Model.ID
}

// NewRegistry makes a registry. Prefixes and model ids must be unique and each
// model's id must begin with its entry's prefix; the error names the first that
// breaks this, a slip of the wiring.
func NewRegistry(entries ...Entry) (*Registry, error) {
	r := &Registry{providers: map[string]Provider{}, known: map[string]int{}}
	for _, entry := range entries {
		if err := r.add(entry); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Registry) add(entry Entry) error {
	if entry.Prefix == "" || strings.Contains(entry.Prefix, "/") || entry.Provider == nil {
		return fmt.Errorf("llm: entry %q needs a prefix without slash and a provider", entry.Prefix)
	}
	if r.providers[entry.Prefix] != nil {
		return fmt.Errorf("llm: two providers under %q", entry.Prefix)
	}
	r.providers[entry.Prefix] = entry.Provider
	for _, model := range entry.Models {
		id, ok := strings.CutPrefix(model.ID, entry.Prefix+"/")
		if !ok || id == "" {
			return fmt.Errorf("llm: model %q does not begin with %q", model.ID, entry.Prefix+"/")
		}
		if _, twice := r.known[model.ID]; twice {
			return fmt.Errorf("llm: model %q is listed twice", model.ID)
		}
		r.known[model.ID] = len(r.models)
		r.models = append(r.models, model)
	}
	return nil
}

// Provider returns the provider of a listed model and the model's id there. The
// error is an *Error of class invalid_request: a model that nobody listed is
// never called, since nobody has looked at its price.
func (r *Registry) Provider(model string) (Provider, string, error) {
	if _, ok := r.known[model]; !ok {
		return nil, "", invalid(fmt.Sprintf("The model %q is not set up here. Choose one of the list in the step.", fields.Cut(model, 100)))
	}
	prefix, id, _ := strings.Cut(model, "/")
	return r.providers[prefix], id, nil
}

// route finds who answers a request. A workspace's own server may have models that
// nobody here has heard of; its price list says what they cost.
func (r *Registry) route(req Request) (Provider, string, error) {
	prefix, id, _ := strings.Cut(req.Model, "/")
	if provider := r.providers[prefix]; provider != nil && req.Credential.BaseURL != "" && id != "" && len(id) <= 200 {
		return provider, id, nil
	}
	return r.Provider(req.Model)
}

// Model returns the facts of a listed model.
func (r *Registry) Model(id string) (Model, bool) {
	at, ok := r.known[id]
	if !ok {
		return Model{}, false
	}
	return r.models[at], true
}

// InputBound is InputBound within the window of the model that req names: more than it
// reads is refused by the provider, and not charged.
func (r *Registry) InputBound(req Request) int64 {
	bound := InputBound(req)
	if model, ok := r.Model(req.Model); ok && model.ContextTokens > 0 {
		bound = min(bound, model.ContextTokens)
	}
	return bound
}

// Models lists every model in the order of set-up.
func (r *Registry) Models() []Model {
	return append([]Model(nil), r.models...)
}
