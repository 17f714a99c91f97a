package expr

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumbersAreComparedExactly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b json.Number
		want int
	}{
		{"1", "2", -1}, {"10", "9", 1}, {"1.0", "1", 0}, {"0.30", "0.3", 0}, {"-1", "-2", 1}, {"1e2", "100", 0},
		{"0.1000000000000000000001", "0.1", 1}, {"9007199254740993", "9007199254740992", 1},
	} {
		got, err := Compare(c.a, c.b)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%s and %s", c.a, c.b)
	}
	_, err := Compare("1", json.Number(strings.Repeat("9", 300)))
	require.Error(t, err)
}

func TestValuesAreEqualByWhatTheyMean(t *testing.T) {
	t.Parallel()
	decode := func(src string) any {
		v, err := DecodeJSON([]byte(src))
		require.NoError(t, err)
		return v
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1.0,"b":[true]}`, `{"b":[true],"a":1}`, true}, {`"1"`, `1`, false}, {`null`, `null`, true}, {`[1,2]`, `[2,1]`, false},
	} {
		got, err := Equal(decode(c.a), decode(c.b))
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%s and %s", c.a, c.b)
	}
}
