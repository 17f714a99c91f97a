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
}

// Entry joins a provider to the registry.
type Entry struct {
	Prefix   string // the part of a model's id before the first slash
	Provider Provider
	Models   []Model
}

// Registry finds the provider of a model. It does not change after it is made,
// so it is safe for concurrent use.
type Registry struct {
	providers map[string]Provider // by prefix
	models    []Model
	known     map[string]bool // by Model.ID
}

// NewRegistry makes a registry. Prefixes and model ids must be unique and each
// model's id must begin with its entry's prefix; the error names the first that
// breaks this, a slip of the wiring.
func NewRegistry(entries ...Entry) (*Registry, error) {
	r := &Registry{providers: map[string]Provider{}, known: map[string]bool{}}
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
		if r.known[model.ID] {
			return fmt.Errorf("llm: model %q is listed twice", model.ID)
		}
		r.known[model.ID] = true
		r.models = append(r.models, model)
	}
	return nil
}

// Provider returns the provider of a listed model and the model's id there. The
// error is an *Error of class invalid_request: a model that nobody listed is
// never called, since nobody has looked at its price.
func (r *Registry) Provider(model string) (Provider, string, error) {
	if !r.known[model] {
		return nil, "", invalid(fmt.Sprintf("The model %q is not set up here. Choose one of the list in the step.", fields.Cut(model, 100)))
	}
	prefix, id, _ := strings.Cut(model, "/")
	return r.providers[prefix], id, nil
}

// Models lists every model in the order of set-up.
func (r *Registry) Models() []Model {
	return append([]Model(nil), r.models...)
}
