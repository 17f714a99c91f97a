package browsertest

import (
	"context"
	"strconv"
	"time"

	"github.com/chromedp/chromedp"
)

// Press presses the first element that a selector finds, as its own page sees it. A press
// at a point on the screen may meet a page that is still settling.
func (p *Page) Press(selector string) {
	p.t.Helper()
	if !Eval[bool](p, `(()=>{const e=document.querySelector(`+strconv.Quote(selector)+`);e?.click();return Boolean(e)})()`) {
		p.t.Fatalf("nothing to press at %s (%s)", selector, p.view)
	}
}

// askEvery is the pause between two looks at a page that is waited for.
const askEvery = 50 * time.Millisecond

// Await waits until a condition, a script, holds on the page that is loaded by then. It
// asks anew each time, so it outlives the change from one page to the next, in which a
// script may find no page at all.
func (p *Page) Await(condition string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, stepLimit)
	defer cancel()
	script := `document.readyState==="complete"&&Boolean(` + condition + `)`
	for {
		holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool](script))
		if err == nil && holds {
			return
		}
		select {
		case <-ctx.Done():
			p.t.Fatalf("waiting in the browser (%s) for %s: %v", p.view, condition, err)
		case <-time.After(askEvery):
		}
	}
}

// AwaitElement waits until a selector finds something on a loaded page.
func (p *Page) AwaitElement(selector string) {
	p.t.Helper()
	p.Await(`document.querySelector(` + strconv.Quote(selector) + `)`)
}
