package browsertest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// call sends one command of the browser's protocol to the tab.
func call[P, R any](p *Page, command cdp.Command[P, R], params P) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, stepLimit)
	defer cancel()
	if _, err := chromedp.Call(ctx, command, params); err != nil {
		p.t.Fatalf("command to the browser (%s): %v", p.view, err)
	}
}

// readAxe finds web/testdata/axe.min.js from the folder a test runs in.
var readAxe = sync.OnceValues(func() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		data, err := os.ReadFile(filepath.Join(dir, "web", "testdata", "axe.min.js"))
		if err == nil {
			return string(data), nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", err
		}
		dir = parent
	}
})

func axeSource(t testing.TB) string {
	t.Helper()
	source, err := readAxe()
	if err != nil {
		t.Fatalf("read axe: %v", err)
	}
	return source
}
