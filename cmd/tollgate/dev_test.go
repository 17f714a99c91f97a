package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLocalModeIsReadySoonAndStopsSoon(t *testing.T) {
	t.Parallel()
	data := dataFolder(t)
	_, err := binary() // its build does not count
	require.NoError(t, err)
	began := time.Now()
	l := startLocal(t, data)
	t.Logf("ready after %v", time.Since(began).Round(time.Millisecond))
	require.Less(t, time.Since(began), 15*time.Second*slack())

	for _, path := range []string{"/healthz", "/readyz"} {
		response, err := http.Get(l.url + path)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", path, body)
	}

	began = time.Now()
	l.Signal(syscall.SIGTERM, 10*time.Second)
	t.Logf("stopped after %v", time.Since(began).Round(time.Millisecond))
	require.Empty(t, postgresUnder(t, data), "Postgres was left behind")
	require.Equal(t, 0, l.ExitCode(), l.Output())

	began = time.Now()
	startLocal(t, data)
	t.Logf("ready again after %v", time.Since(began).Round(time.Millisecond))
}

// slack is what a machine that does other work at the same time may take longer.
func slack() time.Duration { return 2 }

// postgresUnder lists the processes whose working folder is below dir.
func postgresUnder(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil // only where there is such a thing
	}
	var found []string
	for _, entry := range entries {
		if cwd, err := os.Readlink("/proc/" + entry.Name() + "/cwd"); err == nil && strings.HasPrefix(cwd, dir) {
			found = append(found, entry.Name())
		}
	}
	return found
}

func TestLocalModeWorksAsAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("this user is an ordinary one: the other tests show it")
		return
	}
	data := dataFolder(t)
	const nobody = 65534
	require.NoError(t, os.Chown(data, nobody, nobody))
	path, err := binary()
	require.NoError(t, err)
	cmd := exec.Command(path, "--data", data, "--addr", "127.0.0.1:0")
	cmd.Env = append(cleanEnv(), "HOME="+data)
	cmd.Dir = data
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody, NoSetGroups: true}}
	out, err := os.Create(data + ".log")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.Remove(out.Name()) })
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool {
		said, _ := os.ReadFile(out.Name())
		return strings.Contains(string(said), "Tollgate is ready")
	}, 60*time.Second, 50*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}

// Whatever is wrong is told in one line that says what to do.
func TestWhatIsWrongIsToldInOneLine(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = busy.Close() })
	taken := dataFolder(t)
	startLocal(t, taken)

	production := []string{
		"DATABASE_URL=postgres://nobody:secretword@127.0.0.1:1/none?connect_timeout=2", "TOLLGATE_SECRET=" + strings.Repeat("ab", 32),
		"TOLLGATE_BASE_URL=https://tollgate.example", "TOLLGATE_SMTP_URL=smtp://127.0.0.1:25", "TOLLGATE_MAIL_FROM=a@tollgate.example",
	}
	for name, tc := range map[string]struct {
		args []string
		env  []string
		code int
		says string
	}{
		"unknown command":      {[]string{"fly"}, nil, 2, "choose one of dev, web, work, migrate, seed, rewrap, fakemodels"},
		"unknown flag":         {[]string{"--prot"}, nil, 2, "flag provided but not defined"},
		"left-over word":       {[]string{"dev", "now"}, nil, 2, `unexpected "now"`},
		"busy address":         {[]string{"--addr", busy.Addr().String(), "--data", dataFolder(t)}, nil, 1, "another program listens at"},
		"folder in use":        {[]string{"--addr", "127.0.0.1:0", "--data", taken}, nil, 1, "another"},
		"nothing set":          {[]string{"web"}, nil, 1, "DATABASE_URL is not set"},
		"work needs it too":    {[]string{"work"}, nil, 1, "TOLLGATE_SECRET is not set"},
		"migrate needs a url":  {[]string{"migrate"}, nil, 1, "DATABASE_URL is not set"},
		"bad secret":           {[]string{"web"}, []string{"TOLLGATE_SECRET=short"}, 1, "TOLLGATE_SECRET should be at least 64 hexadecimal digits"},
		"bad base url":         {[]string{"web"}, []string{"TOLLGATE_BASE_URL=tollgate.example"}, 1, "TOLLGATE_BASE_URL should look like https://"},
		"bad database url":     {[]string{"web"}, []string{"DATABASE_URL=mysql://x"}, 1, "DATABASE_URL should look like postgres://"},
		"bad number":           {[]string{"work"}, []string{"TOLLGATE_SLICES=-1"}, 1, "TOLLGATE_SLICES should be a number from 1 to 10000"},
		"bad time":             {[]string{"work"}, []string{"TOLLGATE_DRAIN=soon"}, 1, "TOLLGATE_DRAIN should be a time"},
		"bad mail server":      {[]string{"web"}, append(production[:3:3], "TOLLGATE_SMTP_URL=mail", "TOLLGATE_MAIL_FROM=a@tollgate.example"), 1, "TOLLGATE_SMTP_URL"},
		"database not reached": {[]string{"web"}, production, 1, "database"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, code := once(t, tc.args, tc.env...)
			require.Equal(t, tc.code, code, out)
			require.Contains(t, out, tc.says)
			require.NotContains(t, out, "goroutine")
			require.NotContains(t, out, "secretword")
		})
	}
}
