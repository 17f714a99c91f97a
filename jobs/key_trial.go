package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tollgate/app/llm"
	"tollgate/tenants"
)

// KeyTrial tries keys at their providers. It asks a model for one word, which costs less
// than a cent there: nothing smaller shows that a key may call models.
type KeyTrial struct{ Registry *llm.Registry }

// trialPatience bounds a trial: somebody looks at the page meanwhile.
const trialPatience = 15 * time.Second

// accepted are the classes of failures that come after the provider has taken the key.
var accepted = map[llm.Class]bool{llm.ClassRefused: true, llm.ClassMalformed: true, llm.ClassEmpty: true, llm.ClassTruncated: true}

// Try calls a model of the provider with the key, once, and says for people what came of it.
func (k KeyTrial) Try(ctx context.Context, provider string, key tenants.OpenedProviderKey) (passed bool, words string) {
	model, ok := k.model(provider)
	if !ok {
		return false, "No model of this provider is set up here, so the key cannot be tried."
	}
	ctx, cancel := context.WithTimeout(ctx, trialPatience)
	defer cancel()
	began := time.Now()
	_, err := askWith(ctx, k.Registry, llm.Request{
		Model: model.ID, Prompt: "Answer with the word yes.", MaxTokens: 16, Key: tenants.NewID[KeyTrial]().String(),
	}, llm.Credential{Secret: key.Value, BaseURL: key.BaseURL})
	fault := new(llm.Error)
	if !errors.As(err, &fault) || accepted[fault.Class] {
		return true, fmt.Sprintf("The provider takes the key: %s answered after %.1f s.", model.Name, time.Since(began).Seconds())
	}
	return false, trialWords(fault)
}

// trialWords say why a trial failed; what the provider said comes last.
func trialWords(fault *llm.Error) string {
	words := fault.Message
	switch fault.Class {
	case llm.ClassAuth:
		words = "The provider refuses this key. Check that it was copied whole, that it is still valid there, and that it may call models."
	case llm.ClassSpendLimit:
		words = "The provider knows the key, but its account has no money left or has reached a limit set there."
	case llm.ClassRateLimited, llm.ClassOverloaded:
		words = "The provider is too busy to tell. Test the key again in a minute."
	}
	if fault.Detail != "" {
		words += " The provider says: " + fault.Detail
	}
	return words
}

func (k KeyTrial) model(provider string) (llm.Model, bool) {
	for _, model := range k.Registry.Models() {
		if strings.HasPrefix(model.ID, provider+"/") {
			return model, true
		}
	}
	return llm.Model{}, false
}
