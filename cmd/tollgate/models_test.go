package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/llm"
	"tollgate/billing/ledger"
)

func environment(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

// TestProvidersFromTheEnvironment: a key or an address of any of them makes its models
// usable, and nobody else's.
func TestProvidersFromTheEnvironment(t *testing.T) {
	t.Parallel()
	ids := map[string]string{"OPENAI": "openai/gpt-5.6-terra", "ANTHROPIC": "anthropic/claude-sonnet-5", "GEMINI": "google/gemini-3.8-flash"}
	for name := range ids {
		for variable, value := range map[string]string{name + "_API_KEY": "sk-1", name + "_BASE_URL": "https://models.example.com"} {
			c, err := load(environment(map[string]string{variable: value}))
			require.NoError(t, err)
			registry, err := models(settings{config: c, practice: llm.NewPractice(0, 0)})
			require.NoError(t, err)
			for other, id := range ids {
				model, ok := registry.Model(id)
				require.True(t, ok, id)
				require.Equal(t, other != name, model.OwnKeyOnly, "%s with %s", id, variable)
			}
		}
		c, err := load(environment(map[string]string{name + "_MODELS": " small, large", name + "_API_KEY": "k"}))
		require.NoError(t, err)
		registry, err := models(settings{config: c, practice: llm.NewPractice(0, 0)})
		require.NoError(t, err)
		require.Len(t, registry.Models(), 5)
	}
}

func TestModelAddressesNameTheirVariable(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"OPENAI", "ANTHROPIC", "GEMINI"} {
		for _, bad := range []string{"models.example.com", "ftp://models.example.com", "https://user:secret@models.example.com", "https://models.example.com?key=1", "https://"} {
			_, err := load(environment(map[string]string{name + "_BASE_URL": bad}))
			require.ErrorContains(t, err, name+"_BASE_URL should look like")
			require.NotContains(t, err.Error(), "secret")
		}
	}
}

// TestEveryRoutableModelHasAPrice: what can be chosen without setting anything up can be
// paid for, and on no day of the years to come is it free or half known.
func TestEveryRoutableModelHasAPrice(t *testing.T) {
	t.Parallel()
	c, err := load(environment(nil))
	require.NoError(t, err)
	registry, err := models(settings{config: c, practice: llm.NewPractice(0, 0)})
	require.NoError(t, err)
	release := time.Date(2026, time.December, 1, 0, 0, 0, 0, time.UTC)
	for _, model := range registry.Models() {
		price, err := ledger.PriceAt(model.ID, release)
		require.NoError(t, err, model.ID)
		require.Equal(t, model.Practice, price.Funds == ledger.Pretend, "%s is paid with %s dollars", model.ID, price.Funds)
		for day := range 3 * 365 {
			price, err := ledger.PriceAt(model.ID, release.AddDate(0, 0, day))
			if err != nil {
				require.ErrorIs(t, err, ledger.ErrUnknownPrice)
				continue
			}
			require.Positive(t, price.Cost(ledger.Tokens{Input: 1_000_000}), model.ID)
			require.Positive(t, price.Cost(ledger.Tokens{Output: 1_000_000}), model.ID)
		}
	}
}
