package tenants_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/tenants"
)

func testSecret(t *testing.T, fill byte) tenants.Secret {
	t.Helper()
	secret, err := tenants.NewSecret(bytes.Repeat([]byte{fill}, 32))
	require.NoError(t, err)
	return secret
}

func TestSecretRefusesShortKeys(t *testing.T) {
	t.Parallel()
	_, err := tenants.NewSecret(make([]byte, 31))
	require.ErrorContains(t, err, "at least 32")
	require.Panics(t, func() { tenants.Secret{}.Derive("x", [16]byte{}, 0) })
}

func TestSecretDerivesApart(t *testing.T) {
	t.Parallel()
	secret := testSecret(t, 's')
	seen := map[[32]byte]string{}
	add := func(name string, token [32]byte) {
		require.NotContains(t, seen, token, "%s equals %s", name, seen[token])
		seen[token] = name
	}
	for _, purpose := range []string{"", "a", "ab", "a\x00"} {
		for _, id := range [][16]byte{{}, {1}, {'b'}, {15: 1}} {
			for _, generation := range []int{0, 1, 256} {
				add(fmt.Sprint(purpose, id, generation), secret.Derive(purpose, id, generation))
			}
		}
	}
	add("other key", testSecret(t, 'z').Derive("a", [16]byte{1}, 0))
	require.Equal(t, secret.Derive("a", [16]byte{1}, 1), testSecret(t, 's').Derive("a", [16]byte{1}, 1))
}

func TestSecretKeyIsCopied(t *testing.T) {
	t.Parallel()
	key := bytes.Repeat([]byte{'k'}, 32)
	secret, err := tenants.NewSecret(key)
	require.NoError(t, err)
	before := secret.Derive("p", [16]byte{}, 0)
	key[0] = 'x'
	require.Equal(t, before, secret.Derive("p", [16]byte{}, 0))
}

func TestSecretIsNeverPrinted(t *testing.T) {
	t.Parallel()
	secret := testSecret(t, 'Q')
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", secret, "in", struct{ S tenants.Secret }{secret})
	printed := fmt.Sprintf("%v %+v %#v %s %q %v", secret, secret, secret, secret, secret, struct{ S tenants.Secret }{secret}) + log.String()
	require.NotContains(t, printed, "QQ")
	require.NotContains(t, printed, "81, 81")
	require.NotContains(t, printed, "81 81")
	require.NotContains(t, printed, "0x51")
	_, err := json.Marshal(secret)
	require.Error(t, err)
}

func TestSeatTokenIsURLSafeAndHashed(t *testing.T) {
	t.Parallel()
	token := testSecret(t, 's').SeatToken([16]byte{1}, 1)
	require.Len(t, token, 43)
	require.Empty(t, strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"))
	require.Len(t, tenants.HashToken(token), 32)
	require.NotEqual(t, tenants.HashToken(token), tenants.HashToken(token[:42]))
}
