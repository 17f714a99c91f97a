package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// stepLimit is the longest any one step of a browser may take. Pages need
// well under a second; machines that build at the same time need much more.
const stepLimit = 60 * time.Second

// Browser is one running Chromium. Tests that run at the same time share one;
// it ends when the last of them does.
type Browser struct {
	ctx context.Context
}

// names are the programs that count as a Chromium, best first.
var names = []string{"chromium", "chromium-browser", "google-chrome", "chrome"}

// shared is the Chromium that tests of this process use at the moment.
var shared struct {
	sync.Mutex
	browser *Browser
	users   int
	stop    func()
}

// Start gives the Chromium of this process, launched if needed with an empty
// profile, or skips the test.
func Start(t testing.TB) *Browser {
	t.Helper()
	path := find()
	if path == "" {
		if os.Getenv("TOLLGATE_NO_SKIP") == "1" {
			t.Fatal("this test needs a Chromium, and TOLLGATE_NO_SKIP forbids to skip it: install the package chromium")
		}
		t.Skip("no Chromium found: install the package chromium to run the browser tests")
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.browser == nil {
		browser, stop, err := launch(path)
		if err != nil {
			t.Fatalf("start Chromium: %v", err)
		}
		shared.browser, shared.stop = browser, stop
	}
	shared.users++
	t.Cleanup(leave)
	return shared.browser
}

// leave ends the Chromium after its last user.
func leave() {
	shared.Lock()
	defer shared.Unlock()
	if shared.users--; shared.users == 0 {
		shared.stop()
		shared.browser, shared.stop = nil, nil
	}
}

// launch starts a Chromium. What it returns stops it and removes its profile.
func launch(path string) (*Browser, func(), error) {
	profile, err := os.MkdirTemp("", "browsertest")
	if err != nil {
		return nil, nil, fmt.Errorf("make a profile folder: %w", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoSandbox, // root in a container has no sandbox; the pages are our own
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", true),
		chromedp.UserDataDir(profile),
	)
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	stop := func() {
		cancel()
		stopAllocator()
		// A file the browser still writes is left to the system's own clean-up.
		_ = os.RemoveAll(profile)
	}
	// The browser lives as long as the context of its first step, so that one
	// gets no time limit of its own; a watch stands in for it.
	started := make(chan error, 1)
	go func() { started <- chromedp.Do(ctx) }()
	select {
	case err = <-started:
	case <-time.After(stepLimit):
		err = fmt.Errorf("no answer within %s", stepLimit)
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	return &Browser{ctx: ctx}, stop, nil
}

func find() string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
