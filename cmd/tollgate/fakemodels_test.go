package main

import (
	"bufio"
	"context"
	"io"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/llm"
)

// TestFakeModels: the command serves all three formats, each reached by the address that
// it prints.
func TestFakeModels(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"fakemodels", "--addr", "127.0.0.1:0", "--seed", "3", "--tokens-per-minute", "1000"}, environment(nil), writer, io.Discard)
		_ = writer.Close()
	}()
	out := bufio.NewReader(reader)
	first, err := out.ReadString('\n')
	require.NoError(t, err)
	second, err := out.ReadString('\n')
	require.NoError(t, err)
	said := map[string]string{}
	for _, found := range regexp.MustCompile(`([A-Z_]+)=([^ ,\n]+)`).FindAllStringSubmatch(first+second, -1) {
		said[found[1]] = found[2]
	}
	c, err := load(environment(said))
	require.NoError(t, err)
	registry, err := models(settings{config: c, practice: llm.NewPractice(0, 0)})
	require.NoError(t, err)
	for _, model := range registry.Models() {
		answer, err := llm.Call(t.Context(), registry, llm.Request{Model: model.ID, Prompt: "hello", MaxTokens: 50})
		require.NoError(t, err, model.ID)
		require.NotEmpty(t, answer.Text)
	}
	cancel()
	rest, err := io.ReadAll(out)
	require.NoError(t, err)
	require.Contains(t, string(rest), "3 requests taken")
	require.Zero(t, <-code)
}

func TestFakeModelsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--latency should be":     {"--latency", "soon"},
		"two such as 300ms-2s":    {"--latency", "2s-1s"},
		"no mishap \"flood\"":     {"--mix", "flood=10"},
		"\"429=x\" should say":    {"--mix", "429=x"},
		"at most a thousand":      {"--mix", "429=600,529=600"},
		"limit per minute should": {"--tokens-per-minute", "-1"},
	} {
		var out stringWriter
		require.Equal(t, 2, run(t.Context(), append([]string{"fakemodels"}, args...), environment(nil), io.Discard, &out))
		require.Contains(t, string(out), want)
	}
	shares, err := readMix("429=20, cut=5")
	require.NoError(t, err)
	require.Len(t, shares, 2)
	require.Equal(t, 429, shares[0].Turn.Status)
}

type stringWriter []byte

func (w *stringWriter) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}
