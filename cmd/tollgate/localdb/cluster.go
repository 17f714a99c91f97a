//go:build unix

package localdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// initCluster makes the data folder. The work happens in a sibling that is renamed
// when complete: whatever interrupts it leaves either no data or whole data.
func (h *home) initCluster(ctx context.Context, b binaries, p passwords, sync bool) error {
	h.dropStaging()
	staging, err := os.MkdirTemp(h.dir, stagingPrefix)
	if err != nil {
		return unusable(h.dir, err)
	}
	defer os.RemoveAll(staging)
	secret := filepath.Join(staging, "password")
	if err := os.WriteFile(secret, []byte(p.Super+"\n"), 0o600); err != nil {
		return unusable(staging, err)
	}
	for _, path := range []string{secret, staging} {
		if err := h.account.take(path); err != nil {
			return err
		}
	}
	made := filepath.Join(staging, dataName)
	if err := h.runInitdb(ctx, b, made, secret, sync); err != nil {
		return err
	}
	if err := os.Remove(h.data()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return unusable(h.data(), err) // only ever an empty folder, see dataMajor
	}
	if err := os.Rename(made, h.data()); err != nil {
		return unusable(h.data(), err)
	}
	return syncDir(h.dir)
}

// dropStaging removes what an interrupted attempt left; it never held data.
func (h *home) dropStaging() {
	left, _ := filepath.Glob(filepath.Join(escapeGlob(h.dir), stagingPrefix+"*"))
	for _, dir := range left {
		_ = os.RemoveAll(dir)
	}
}

// runInitdb sorts text by bytes, the same on every machine, but knows letters beyond
// ASCII by the system's locale of that kind: C.UTF-8 on Linux, UTF-8 on macOS. Where
// there is neither, upper and lower case exist in ASCII only.
func (h *home) runInitdb(ctx context.Context, b binaries, dir, secret string, sync bool) error {
	args := []string{
		"--pgdata=" + dir, "--username=" + superuser, "--pwfile=" + secret,
		"--auth-host=scram-sha-256", "--auth-local=scram-sha-256",
		"--encoding=UTF8", "--locale=C",
	}
	if !sync {
		args = append(args, "--no-sync")
	}
	for _, ctype := range []string{"C.UTF-8", "UTF-8", "C"} {
		out, err := h.initdbOnce(ctx, b, filepath.Dir(dir), append(args, "--lc-ctype="+ctype))
		if err == nil {
			return nil
		}
		if ctype == "C" || !strings.Contains(out, "invalid locale") {
			return fmt.Errorf("the database could not be made in %s (%w): %s", h.dir, err, lastLine(out))
		}
		_ = os.RemoveAll(dir)
	}
	return nil
}

func (h *home) initdbOnce(ctx context.Context, b binaries, cwd string, args []string) (string, error) {
	var out bytes.Buffer
	cmd := exec.Command(b.initdb(), args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = cwd, childEnv(), &out, &out
	err := runChild(ctx, cmd, h.account)
	return out.String(), err
}

// syncDir makes a rename inside the folder survive a power cut.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return unusable(dir, err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return unusable(dir, err)
	}
	return nil
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
