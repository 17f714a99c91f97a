package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/web/browsertest"
)

// walker is somebody at a browser.
type walker struct {
	*browsertest.Page
	t      *testing.T
	site   string
	clicks int
}

// click presses what a selector finds first, and waits until the page that follows has
// loaded. It is a person's click: what is hidden cannot be pressed.
func (w *walker) click(selector string) {
	w.t.Helper()
	w.clicks++
	pressed := browsertest.Eval[string](w.Page, `(()=>{
		const e=[...document.querySelectorAll(`+strconv.Quote(selector)+`)].find(e=>e.getClientRects().length);
		if(!e)return "";
		window.__left=true;
		e.click();
		return e.textContent.trim()||"pressed";
	})()`)
	require.NotEmpty(w.t, pressed, "nothing to press at %s on %s", selector, w.address())
	w.until("the page after "+pressed, `!window.__left&&document.readyState==="complete"`)
}

// until waits for a condition of the page. While a page is being left a script may find
// nothing, which counts as not yet.
func (w *walker) until(what, condition string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		return browsertest.Eval[bool](w.Page, `Boolean(document.body)&&Boolean(`+condition+`)`)
	}, 30*time.Second, 50*time.Millisecond, "waiting for %s at %s", what, w.address())
}

func (w *walker) address() string { return browsertest.Eval[string](w.Page, "location.href") }

func (w *walker) text() string { return browsertest.Eval[string](w.Page, "document.body.innerText") }

// awaitText waits for words on a page: a live page brings them by itself, and without
// scripts a person reloads.
func (w *walker) awaitText(words string, scripts bool) {
	w.t.Helper()
	if scripts {
		w.until(words, `document.body.innerText.includes(`+strconv.Quote(words)+`)`)
		return
	}
	require.Eventually(w.t, func() bool {
		w.Go(w.address())
		return strings.Contains(w.text(), words)
	}, 30*time.Second, 500*time.Millisecond, "waiting for %q", words)
}

// The first thing that a newcomer does, with and without scripts, to either answer: go
// on as somebody, run a template's sample, read the mail, decide, see the run end.
func TestWalkFromSignInToDecision(t *testing.T) {
	t.Parallel()
	browser := browsertest.Start(t)
	program := startLocal(t, dataFolder(t))
	for _, scripts := range []bool{true, false} {
		for _, verdict := range []string{"approve", "reject"} {
			t.Run(fmt.Sprintf("%s, scripts %v", verdict, scripts), func(t *testing.T) {
				w := &walker{Page: browser.Open(t, browsertest.View{Width: 1280, NoScript: !scripts}), t: t, site: program.url}
				w.startSample(scripts)
				run := w.address()
				w.awaitText("Waiting for a person", scripts)
				w.Check(t)
				w.Shot("walk-run-waiting")

				w.openMail()
				w.becomeReviewer(verdict)
				w.Check(t)
				w.decide(verdict)
				w.Check(t)
				w.Shot("walk-decided-" + verdict)

				w.comeBack(run)
				w.awaitText("Nothing is left to do", scripts)
				require.Contains(t, w.text(), branches[verdict].done)
				w.until("the tab to say so", `document.title.startsWith("Done: ")`)
				w.Check(t)
				w.Shot("walk-run-done-" + verdict)
				require.NotContains(t, w.text(), branches[verdict].never)
			})
		}
	}
}

// branches are the steps that tell the two answers' ways apart.
var branches = map[string]struct{ done, never string }{
	"approve": {"Send the answer", "Hand the case to the team"},
	"reject":  {"Hand the case to the team", "Send the answer"},
}

// startSample is at most three clicks from the door to a running run.
func (w *walker) startSample(scripts bool) {
	w.t.Helper()
	w.Go(w.site + "/signin")
	w.Check(w.t)
	w.click(`[data-testid="as-builder"]`)
	w.Check(w.t)
	w.click(`nav a[href$="/templates"]`)
	w.Check(w.t)
	w.click(`[data-testid="try-customer-email"]`)
	require.LessOrEqual(w.t, w.clicks, 3)
	require.Contains(w.t, w.address(), "/runs/")
}

// openMail opens the newest mail that asks for a decision.
func (w *walker) openMail() {
	w.t.Helper()
	w.Go(w.site + "/mail")
	w.until("a mail", `document.querySelector('main a[href^="/mail/"]')`)
	w.Check(w.t)
	w.click(`main a[href^="/mail/"]`)
	w.Check(w.t)
}

// becomeReviewer opens the mail's link. Who started the run may not decide it: she goes
// on as the person who was asked, or comes with the link alone, as from another computer.
func (w *walker) becomeReviewer(verdict string) {
	w.t.Helper()
	if verdict == "approve" {
		w.click(`main a[href*="/r/"]`)
		w.click(`[data-testid="continue-as"]`)
		w.Go(w.address()) // forgets that the browser logged the refusal before it
	} else {
		link := browsertest.Eval[string](w.Page, `document.querySelector('main a[href*="/r/"]').href`)
		w.signOut()
		w.Go(link)
	}
	w.Shot("walk-question-" + verdict)
}

func (w *walker) signOut() {
	w.t.Helper()
	w.Go(w.site)
	browsertest.Eval[bool](w.Page, `(document.querySelector('[data-testid="sign-out"]').click(),true)`)
	w.until("the door", `document.querySelector('[data-testid="as-builder"]')`)
}

func (w *walker) decide(verdict string) {
	w.t.Helper()
	found := browsertest.Eval[bool](w.Page, `(()=>{
		const e=document.querySelector('input[type=radio][value=`+strconv.Quote(verdict)+`]');
		if(!e)return false;
		e.click();
		const c=document.querySelector('textarea[name=comment]');
		if(c)c.value="Because of the test.";
		return true;
	})()`)
	require.True(w.t, found, "no choice %q at %s", verdict, w.address())
	w.click(`[data-testid="decide"]`)
}

// comeBack goes on as the person who started the run, and looks at it.
func (w *walker) comeBack(run string) {
	w.t.Helper()
	w.Go(w.site + "/signin")
	w.click(`[data-testid="as-builder"]`)
	w.Go(run)
}
