package fakellm_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
)

// TestLimit: what is beyond the limit is refused with the time to wait, each key has a
// bucket of its own, and what was refused is counted.
func TestLimit(t *testing.T) {
	t.Parallel()
	server, url := start(t)
	server.Limit(fakellm.Limit{Requests: 3, Per: time.Hour})
	for n, want := range []int{200, 200, 200, 429, 429} {
		status, text := post(t, url, "k", good)
		require.Equal(t, want, status, "%d: %s", n, text)
	}
	require.EqualValues(t, 3, server.Metered().Taken)
	require.EqualValues(t, 2, server.Metered().Refused)

	server.Limit(fakellm.Limit{Tokens: 60, Per: time.Hour})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", strings.NewReader(good))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer other")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "60", res.Header.Get("X-Ratelimit-Limit-Tokens"))
	var statuses []int
	for range 6 {
		status, _ := post(t, url, "k", good)
		statuses = append(statuses, status)
	}
	require.Contains(t, statuses, 200)
	require.Equal(t, 429, statuses[5])
	require.LessOrEqual(t, server.Metered().Tokens, int64(120), "two buckets of sixty")
}

// TestLimitFills: the bucket fills evenly, so a whole second of a small one passes many.
func TestLimitFills(t *testing.T) {
	t.Parallel()
	server, url := start(t)
	server.Limit(fakellm.Limit{Requests: 2, Per: 20 * time.Millisecond})
	require.Eventually(t, func() bool {
		post(t, url, "k", good)
		return server.Metered().Taken > 10
	}, 10*time.Second, time.Millisecond)
}
