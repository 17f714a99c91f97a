package jobs_test

import (
	"testing"

	"tollgate/tenants"
)

// What stands before and behind a model call costs: nothing for the practice model, the
// look at the workspace's keys for a real one, and the two changes of a bucket where a
// limit is set. The call itself is made to a server that answers at once.
func BenchmarkModelCalls(b *testing.B) {
	b.Run("neither key nor limit", func(b *testing.B) {
		c := newCaller(b, nil)
		c.ai.Access = nil
		askOften(b, c)
	})
	for name, limits := range map[string]tenants.RateLimits{"unlimited": nil, "limited": {tenants.AnyModel: {Requests: tenants.MaxRate, Tokens: tenants.MaxRate}}} {
		b.Run(name, func(b *testing.B) {
			askOften(b, newCaller(b, limits))
		})
	}
}

func askOften(b *testing.B, c *caller) {
	b.Helper()
	c.server.Keep(0)
	for b.Loop() {
		if reply := c.call(asked, tenants.ProviderKeyID{}); reply.Failure != nil {
			b.Fatal(reply.Failure)
		}
	}
}
