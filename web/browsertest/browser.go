package browsertest

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// stepLimit is the longest any one step of a browser may take. Pages need
// well under a second; machines that build at the same time need much more.
const stepLimit = 60 * time.Second

// Browser is one running Chromium. It ends with its test.
type Browser struct {
	ctx context.Context
}

// names are the programs that count as a Chromium, best first.
var names = []string{"chromium", "chromium-browser", "google-chrome", "chrome"}

// Start launches a Chromium with an empty profile, or skips the test.
func Start(t testing.TB) *Browser {
	t.Helper()
	path := find()
	if path == "" {
		if os.Getenv("TOLLGATE_NO_SKIP") == "1" {
			t.Fatal("this test needs a Chromium, and TOLLGATE_NO_SKIP forbids to skip it: install the package chromium")
		}
		t.Skip("no Chromium found: install the package chromium to run the browser tests")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoSandbox, // root in a container has no sandbox; the pages are our own
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", true),
		chromedp.UserDataDir(t.TempDir()),
	)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	// The browser lives as long as the context of its first step, so that one
	// gets no time limit of its own; a watch stands in for it.
	started := make(chan error, 1)
	go func() { started <- chromedp.Do(ctx) }()
	select {
	case err := <-started:
		if err != nil {
			t.Fatalf("start Chromium: %v", err)
		}
	case <-time.After(stepLimit):
		t.Fatalf("start Chromium: no answer within %s", stepLimit)
	}
	return &Browser{ctx: ctx}
}

func find() string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
