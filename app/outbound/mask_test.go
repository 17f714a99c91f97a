package outbound

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const hidden = `s3cret/"value"&more+`

func TestMasksHideEverySpelling(t *testing.T) {
	t.Parallel()
	m := Masks{}
	m.Hide("ERP key", hidden)
	m.Hide("longer", hidden+"-longer")
	quoted, err := json.Marshal(hidden)
	require.NoError(t, err)
	for _, spelling := range []string{
		hidden, url.QueryEscape(hidden), url.PathEscape(hidden), string(quoted), base64.StdEncoding.EncodeToString([]byte(hidden)),
		base64.RawURLEncoding.EncodeToString([]byte(hidden)), hex.EncodeToString([]byte(hidden)),
	} {
		masked := m.Text("before " + spelling + " after")
		require.NotContains(t, masked, strings.Trim(spelling, `"`))
		require.Contains(t, masked, "[secret ERP key]")
		require.Equal(t, masked, string(m.Bytes([]byte("before "+spelling+" after"))))
	}
	require.Equal(t, "[secret longer]", m.Text(hidden+"-longer"), "the longest that begins there")
	require.Equal(t, "nothing here", m.Text("nothing here"))
}

func TestMasksKeepTheShapeOfValues(t *testing.T) {
	t.Parallel()
	m := Masks{}
	m.Hide("pin", "12345678")
	value := map[string]any{"list": []any{json.Number("12345678"), json.Number("1"), true, nil}, "x 12345678": "is 12345678"}
	require.Equal(t, map[string]any{
		"list": []any{"[secret pin]", json.Number("1"), true, nil}, "x [secret pin]": "is [secret pin]",
	}, m.Value(value))
	require.Equal(t, json.Number("12345678"), value["list"].([]any)[0], "what was given stays as it was")
}

func TestMasksOfNothing(t *testing.T) {
	t.Parallel()
	var none *Masks
	require.Equal(t, "text", none.Text("text"))
	require.Equal(t, []byte("text"), (&Masks{}).Bytes([]byte("text")))
	short := Masks{}
	short.Hide("short", "abc")
	require.Equal(t, "abcdef", short.Text("abcdef"), "what is too short to be told from text is left")
}

// FuzzMasks: whatever the secret and the text around it, the secret does not come through.
func FuzzMasks(f *testing.F) {
	f.Add("s3cret-value", "a", "b")
	f.Add("%%%%%%", "%", "%")
	f.Add("[secret x]", "", "")
	f.Add("aaaaaaa", "aaa", "aaaaaa")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		if len(secret) < minMasked || strings.Contains("[secret x]", secret) {
			return
		}
		m := Masks{}
		m.Hide("x", secret)
		for _, spelling := range spellings(secret) {
			masked := m.Text(before + spelling + after)
			if !strings.Contains("[secret x]"+before+after+"[secret x]", spelling) && len(spelling) >= minMasked {
				require.LessOrEqual(t, strings.Count(masked, secret), strings.Count(before+"[secret x]"+after, secret), "%q", masked)
			}
		}
	})
}
