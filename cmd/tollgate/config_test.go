package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/tenants"
)

func TestSwitchesOfTheModelServerAreYesOrNo(t *testing.T) {
	t.Parallel()
	switches := map[string]func(Config) bool{
		"OPENAI_OLD_TOKEN_LIMIT": func(c Config) bool { return c.OpenAI.oldTokenLimit },
		"OPENAI_NO_SCHEMA":       func(c Config) bool { return c.OpenAI.noSchema },
		"ANTHROPIC_NO_SCHEMA":    func(c Config) bool { return c.Anthropic.noSchema },
		"GEMINI_NO_SCHEMA":       func(c Config) bool { return c.Gemini.noSchema },
	}
	for variable, set := range switches {
		only := func(value string) func(string) string {
			return func(name string) string {
				if name == variable {
					return value
				}
				return ""
			}
		}
		for value, want := range map[string]bool{"": false, "no": false, "yes": true} {
			c, err := load(only(value))
			require.NoError(t, err)
			require.Equal(t, want, set(c), "%s=%q", variable, value)
			for other, theirs := range switches {
				require.True(t, other == variable || !theirs(c), "%s sets %s, too", variable, other)
			}
		}
		for _, value := range []string{"true", "1", "YES", " yes", "on"} {
			_, err := load(only(value))
			require.ErrorContains(t, err, variable+" should be yes or no")
		}
	}
}

func TestOperatorsAreAddresses(t *testing.T) {
	t.Parallel()
	only := func(value string) func(string) string {
		return func(name string) string {
			return map[string]string{"TOLLGATE_OPERATORS": value}[name]
		}
	}
	c, err := load(only(" Olga@Example.com, ben@example.org "))
	require.NoError(t, err)
	require.Equal(t, []string{"olga@example.com", "ben@example.org"}, c.Operators)
	_, err = load(only("olga@example.com, everybody"))
	require.ErrorContains(t, err, "TOLLGATE_OPERATORS should be e-mail addresses apart by commas, and one is \"everybody\"")
}

func TestRateLimitsAreReadByProviderAndModel(t *testing.T) {
	t.Parallel()
	limits, err := rateLimitsFrom(" openai=500/60000, openai/gpt-5.6-terra=100/0,anthropic/claude/x = 0/7 ")
	require.NoError(t, err)
	require.Equal(t, rateLimits{
		"openai":    {tenants.AnyModel: {Requests: 500, Tokens: 60_000}, "gpt-5.6-terra": {Requests: 100}},
		"anthropic": {"claude/x": {Tokens: 7}},
	}, limits)
	for _, bad := range []string{"openai", "openai=", "openai=5", "openai=5/", "=5/5", "openai/=5/5", "openai=-1/5", "openai=5/x", "openai=1e3/5", "openai=5/99999999999"} {
		_, err := rateLimitsFrom(bad)
		require.ErrorContains(t, err, "should be entries such as", bad)
	}
}
