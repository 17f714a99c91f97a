package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fault"
)

// TestMain removes the binary that tests built.
func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(filepath.Dir(built))
	}
	os.Exit(code)
}

var built string

// binary builds the program once. A test that kills it kills the program itself and
// not the go command around it.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tollgate-binary-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	built = filepath.Join(dir, "tollgate")
	out, err := exec.Command("go", "build", "-o", built, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return built, nil
})

// local is the program in local mode.
type local struct {
	*fault.Process
	url string
}

// readyLine is what the local mode says when its pages can be opened.
const readyLine = "Tollgate is ready: "

// startLocal starts the local mode on a data folder and waits until it is ready.
func startLocal(t *testing.T, data string, env ...string) *local {
	t.Helper()
	process := startProgram(t, []string{"--data", data, "--addr", "127.0.0.1:0"}, env...)
	line := process.AwaitLine(readyLine, 60*time.Second)
	return &local{Process: process, url: strings.TrimPrefix(line, readyLine)}
}

// startProgram starts the program under nothing but the given settings.
func startProgram(t *testing.T, args []string, env ...string) *fault.Process {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	return fault.Start(t, path, args, append(cleanEnv(), env...))
}

// cleanEnv is this process's environment without what would set the program up.
func cleanEnv() []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.ContainsFunc([]string{"TOLLGATE_", "OPENAI_", "ANTHROPIC_", "GEMINI_", "DATABASE_URL"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			env = append(env, entry)
		}
	}
	return env
}

// once runs the program to its end.
func once(t *testing.T, args []string, env ...string) (string, int) {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(cleanEnv(), env...)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

// dataFolder is an empty folder that Postgres may reach, whoever runs the test.
func dataFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tollgate-data-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
