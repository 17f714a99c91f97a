package mail

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMailAboutMoneyLeadsOnlyToPagesOfOurs(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "/", "//evil.example/w/", "https://evil.example", "/w/x", "/w/01a22fe4-cc96-79d7-a4f5-d0630683d7c3/../../x y",
		"/w/01a22fe4-cc96-79d7-a4f5-d0630683d7c3\"onclick=", "/w/01a22fe4-cc96-79d7-a4f5-d0630683d7c3@evil.example", "/r/token"} {
		body := askedForMoney("a", "a")
		body.Path = path
		_, err := body.cleaned()
		require.ErrorIs(t, err, ErrBadMessage, path)
	}
	other := askedForMoney("a", "a")
	other.What = KindLoginCode
	_, err := other.cleaned()
	require.ErrorIs(t, err, ErrBadMessage, "it is no sign-in code")
}
