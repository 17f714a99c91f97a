package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// View is how a page is looked at.
type View struct {
	Width    int  // in CSS pixels
	Dark     bool // the reader's system prefers dark
	NoScript bool // scripts are off
}

// String names the view for subtests and files: "390-dark".
func (v View) String() string {
	name := fmt.Sprintf("%d-light", v.Width)
	if v.Dark {
		name = fmt.Sprintf("%d-dark", v.Width)
	}
	if v.NoScript {
		name += "-noscript"
	}
	return name
}

// Views are the four a page must pass: phone and desktop, light and dark.
var Views = []View{{Width: 390}, {Width: 390, Dark: true}, {Width: 1280}, {Width: 1280, Dark: true}}

const windowHeight = 900

// size makes the window of the view's width and a height.
func (v View) size(height int64) chromedp.Action[chromedp.Void] {
	if v.Width < 600 {
		return chromedp.EmulateViewport(int64(v.Width), height, chromedp.EmulateMobile)
	}
	return chromedp.EmulateViewport(int64(v.Width), height)
}

// Page is one tab.
type Page struct {
	t    testing.TB
	ctx  context.Context
	view View

	mu       sync.Mutex
	problems []string
}

// Open makes a new tab with the given view. It is closed with the test.
func (b *Browser) Open(t testing.TB, v View) *Page {
	t.Helper()
	// Cookies of its own: a browser does not tell the ports of one host apart, and tests
	// that run at the same time would sign each other out.
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &Page{t: t, ctx: ctx, view: v}
	// The tab lives as long as the context that opened it, so this first step
	// runs without a limit of its own.
	if err := chromedp.Listen(ctx, p.hear); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	scheme := "light"
	if v.Dark {
		scheme = "dark"
	}
	p.Do(v.size(windowHeight))
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	if v.NoScript {
		call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	}
	return p
}

// Do runs steps in the tab, each within the time limit, and fails the test at
// the first that does not succeed.
func (p *Page) Do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	for _, step := range steps {
		ctx, cancel := context.WithTimeout(p.ctx, stepLimit)
		err := chromedp.Do(ctx, step)
		cancel()
		if err != nil {
			p.t.Fatalf("step in the browser (%s): %v", p.view, err)
		}
	}
}

// Go opens an address and waits until it has loaded. Complaints about the
// page before it are forgotten.
func (p *Page) Go(url string) {
	p.t.Helper()
	p.mu.Lock()
	p.problems = nil
	p.mu.Unlock()
	p.Do(chromedp.Navigate(url))
}

// Eval runs a script in the page and gives its value, as JSON would. Promises
// are waited for. It works under any content policy.
func Eval[T any](p *Page, script string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, stepLimit)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("script in the page (%s): %v", p.view, err)
	}
	return v
}

// hear collects what the console and the browser's log complain about. It
// runs on the browser's own reader and must be quick.
func (p *Page) hear(event any) {
	var problem string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		problem = "uncaught: " + e.ExceptionDetails.Text
	case *runtime.EventConsoleAPICalled:
		if e.Type != runtime.ConsoleAPICalledTypeError && e.Type != runtime.ConsoleAPICalledTypeWarning {
			return
		}
		data, _ := json.Marshal(e.Args)
		problem = fmt.Sprintf("console %s: %s", e.Type, data)
	case *log.EventEntryAdded:
		if e.Entry.Level != log.EntryLevelError && e.Entry.Level != log.EntryLevelWarning {
			return
		}
		problem = fmt.Sprintf("log %s %s: %s (%s)", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL)
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, problem)
}

// Complaints gives what the console and the log complained about so far,
// breaches of the content policy among it.
func (p *Page) Complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.problems...)
}

// Axe runs axe-core on the page, the rule for the size of targets included,
// and gives a line per violation and element.
func (p *Page) Axe() []string {
	p.t.Helper()
	Eval[bool](p, axeSource(p.t)+";true")
	found := Eval[string](p, `axe.run(document,{resultTypes:["violations"],rules:{"target-size":{enabled:true}}}).then(r=>JSON.stringify(r.violations.map(v=>({id:v.id,help:v.help,nodes:v.nodes.map(n=>n.target.join(" ")+" | "+(n.any[0]?.message??n.all[0]?.message??n.none[0]?.message??""))}))))`)
	var violations []struct {
		ID, Help string
		Nodes    []string
	}
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		p.t.Fatalf("read what axe found: %v", err)
	}
	var out []string
	for _, v := range violations {
		for _, n := range v.Nodes {
			out = append(out, fmt.Sprintf("axe %s: %s: %s", v.ID, v.Help, n))
		}
	}
	return out
}

// Overflow gives the elements that make the page wider than the window, or
// nothing if the page does not scroll sideways.
func (p *Page) Overflow() []string {
	p.t.Helper()
	found := Eval[string](p, `(()=>{
		const w=document.documentElement.clientWidth;
		if(document.documentElement.scrollWidth<=w)return "";
		return [...document.querySelectorAll("body *")].filter(e=>e.getBoundingClientRect().right>w+1)
			.map(e=>e.tagName+"."+e.getAttribute("class")+" "+Math.round(e.getBoundingClientRect().right)).slice(0,12).join("\n")||"unknown";
	})()`)
	if found == "" {
		return nil
	}
	return strings.Split(found, "\n")
}

// Check fails t for everything that is wrong with the page as it is.
func (p *Page) Check(t testing.TB) {
	t.Helper()
	for _, c := range p.Complaints() {
		t.Errorf("%s: %s", p.view, c)
	}
	for _, o := range p.Overflow() {
		t.Errorf("%s: wider than the window: %s", p.view, o)
	}
	if p.view.NoScript {
		return
	}
	for _, v := range p.Axe() {
		t.Errorf("%s: %s", p.view, v)
	}
}

// Shot writes a picture of the whole page to the folder TOLLGATE_SHOTS names,
// as name-view.png, for people to look at. Without the variable it does
// nothing.
func (p *Page) Shot(name string) {
	p.t.Helper()
	dir := os.Getenv("TOLLGATE_SHOTS")
	if dir == "" {
		return
	}
	// A window as high as the page keeps what is fixed to its edge at the edge.
	height := Eval[int64](p, "document.documentElement.scrollHeight")
	p.Do(p.view.size(max(height, windowHeight)))
	defer func() { p.Do(p.view.size(windowHeight)) }()
	ctx, cancel := context.WithTimeout(p.ctx, stepLimit)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		p.t.Fatalf("take a picture (%s): %v", p.view, err)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		p.t.Fatalf("make the folder for pictures: %v", err)
	}
	file := filepath.Join(dir, fmt.Sprintf("%s-%s.png", name, p.view))
	if err := os.WriteFile(file, png, 0o600); err != nil {
		p.t.Fatalf("write a picture: %v", err)
	}
}
