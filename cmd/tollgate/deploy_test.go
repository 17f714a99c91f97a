package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/require"
)

// flyFile is what this test needs to know of fly.toml.
type flyFile struct {
	KillSignal  string `toml:"kill_signal"`
	KillTimeout string `toml:"kill_timeout"`
	Env         map[string]string
	Deploy      struct {
		ReleaseCommand string `toml:"release_command"`
	}
	Processes   map[string]string
	HTTPService struct {
		Processes []string
		Checks    []struct{ Path string }
	} `toml:"http_service"`
	Checks map[string]struct {
		Processes []string
		Path      string
	}
}

func TestFlyFileFitsTheProgram(t *testing.T) {
	t.Parallel()
	var fly flyFile
	meta, err := toml.DecodeFile("../../fly.toml", &fly)
	require.NoError(t, err)
	require.NotEmpty(t, meta.Keys())
	for group, command := range fly.Processes {
		require.Contains(t, commands, command, "group %q", group)
	}
	require.Contains(t, commands, fly.Deploy.ReleaseCommand)
	require.Equal(t, "SIGTERM", fly.KillSignal)
	require.Equal(t, []string{"web"}, fly.HTTPService.Processes, "work has no visitors, and must not be stopped for it")
	require.Equal(t, "/readyz", fly.HTTPService.Checks[0].Path)
	require.Equal(t, []string{"work"}, fly.Checks["work"].Processes)

	config, err := load(func(name string) string { return fly.Env[name] })
	require.NoError(t, err)
	killAfter, err := time.ParseDuration(fly.KillTimeout)
	require.NoError(t, err)
	require.Greater(t, killAfter, config.Drain+10*time.Second, "killed before the drain is over")
}

// The steps of the Dockerfile run in order, without Docker, and give a static binary.
func TestImageStepsAreInOrder(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../Dockerfile")
	require.NoError(t, err)
	var steps []string
	for line := range strings.SplitSeq(string(text), "\n") {
		if word, _, _ := strings.Cut(line, " "); word != "" && word != "#" {
			steps = append(steps, word)
		}
	}
	require.Equal(t, []string{"FROM", "WORKDIR", "COPY", "RUN", "COPY", "RUN", "FROM", "COPY", "COPY", "USER", "EXPOSE", "ENTRYPOINT", "CMD"}, steps)
	require.Contains(t, string(text), "CGO_ENABLED=0")
	require.Contains(t, string(text), `ENTRYPOINT ["/tollgate"]`)
	require.NoError(t, exec.Command("bash", "-n", "../../.ci/image").Run())
}
