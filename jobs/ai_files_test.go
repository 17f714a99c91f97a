package jobs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/llm"
	"tollgate/app/pipeline"
)

// What the engine lets through, the models' room takes.
func TestBoundsOfFilesAreTheSame(t *testing.T) {
	t.Parallel()
	require.Equal(t, llm.MaxFiles, pipeline.MaxAIFiles)
	require.Equal(t, llm.MaxFileBytes, pipeline.MaxAIFileBytes)
}

// The bound that money is held for, from what is known of the files, is never below that
// of the call with their bytes.
func TestInputBoundCoversTheFiles(t *testing.T) {
	t.Parallel()
	registry, err := llm.NewRegistry(llm.PracticeEntry(llm.NewPractice(0, 0)))
	require.NoError(t, err)
	ai := AI{Registry: registry}
	input := engine.AIInput{Models: []string{llm.PracticeModel}, Prompt: "Read", MaxTokens: 10}
	bare := ai.InputBound(input)
	for name, file := range map[string]llm.File{
		"image":         {Name: "a.png", MediaType: "image/png", Content: []byte("png")},
		"document":      {Name: "a.pdf", MediaType: "application/pdf", Content: []byte("%PDF")},
		"text":          {Name: "a.txt", MediaType: "text/plain; charset=utf-8", Content: []byte(strings.Repeat("äöü", 999))},
		"data":          {Name: "a.json", MediaType: "application/json", Content: []byte(`{"a": 1}`)},
		"a broken name": {Name: strings.Repeat("\xff", 100), MediaType: "text/csv", Content: []byte("a,b")},
	} {
		asked := input
		asked.Files = []engine.FileRef{{Name: file.Name, Type: file.MediaType, Size: int64(len(file.Content))}}
		full := request(asked, "")
		full.Files = []llm.File{file}
		require.GreaterOrEqual(t, ai.InputBound(asked), llm.InputBound(full), name)
		require.Greater(t, ai.InputBound(asked), bare+int64(len(file.Content)), name)
	}
}
