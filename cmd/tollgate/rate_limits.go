package main

import (
	"fmt"
	"strconv"
	"strings"

	"tollgate/tenants"
)

// rateLimits are limits of the installation's own keys, by provider.
type rateLimits = map[string]tenants.RateLimits

// rateLimitsFrom reads entries such as openai/gpt-5.6-terra=100/20000: a model, or a
// provider for each of its other models, and the calls and tokens a minute.
func rateLimitsFrom(text string) (rateLimits, error) {
	limits := rateLimits{}
	for _, entry := range list(text) {
		what, figures, _ := strings.Cut(entry, "=")
		provider, model, named := strings.Cut(strings.TrimSpace(what), "/")
		if !named {
			model = tenants.AnyModel
		}
		requests, tokens, _ := strings.Cut(figures, "/")
		limit := tenants.RateLimit{Requests: perMinute(requests), Tokens: perMinute(tokens)}
		if provider == "" || model == "" || limit.Requests < 0 || limit.Tokens < 0 {
			return nil, fmt.Errorf("should be entries such as openai=500/60000 apart by commas, and one is %q", entry)
		}
		if limits[provider] == nil {
			limits[provider] = tenants.RateLimits{}
		}
		limits[provider][model] = limit
	}
	return limits, nil
}

// perMinute reads a figure; -1 where it is none.
func perMinute(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n > tenants.MaxRate {
		return -1
	}
	return n
}
