package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/llm"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/web/browsertest"
)

// The pipeline that is broken offers what can be ordered, runs as it is, and is paid in
// pretend dollars.
func TestBreakItsPipelineFitsItsTroubles(t *testing.T) {
	t.Parallel()
	document, err := breakDocument()
	require.NoError(t, err)
	require.Empty(t, pipeline.Blocking(pipeline.Check(document)))
	var offered []string
	for _, choice := range document.Input[0].Choices {
		offered = append(offered, choice.Value+" "+choice.Label)
	}
	var ordered []string
	for _, trouble := range troubles {
		ordered = append(ordered, trouble.Name+" "+trouble.Title)
	}
	require.Equal(t, ordered, offered)
	registry, err := models(settings{practice: llm.NewPractice(0, 0), fakes: "127.0.0.1:1"})
	require.NoError(t, err)
	for _, step := range document.Steps {
		ask, ok := step.With.(*pipeline.AI)
		if !ok {
			continue
		}
		for _, id := range ask.Models {
			model, known := registry.Model(id)
			require.True(t, known && model.Practice, id)
			price, err := ledger.PriceAt(id, time.Now())
			require.NoError(t, err)
			require.Equal(t, ledger.Pretend, price.Funds)
		}
	}
}

// Everything that can be broken is, in the program as people run it, and each run ends
// well in the way that its page says.
func TestBreakItWalk(t *testing.T) {
	t.Parallel()
	browser := browsertest.Start(t)
	program := startLocal(t, dataFolder(t))
	w := &walker{Page: browser.Open(t, browsertest.View{Width: 1280, NoScript: true}), t: t, site: program.url}
	w.Go(w.site + "/signin")
	w.click(`[data-testid="as-builder"]`)
	home := w.address()
	says := map[string]string{
		"429": "The same model is asked again", "529": "The next model is asked: fake/second", "refusal": "The next model is asked: fake/second",
		"cut": "The same model is asked again", "bad-json": "told what was wrong", "kill": "was cut off and made again with the same key",
	}
	w.Go(home + "/break")
	w.Check(t)
	w.Shot("break-it")
	runs, last := map[string]string{}, ""
	start := func(name string) string {
		w.Go(home + "/break")
		w.click(`[data-testid="break-` + name + `"]`)
		w.Check(t)
		runs[name] = browsertest.Eval[string](w.Page, `document.querySelector('[data-testid="open-run"]').href`)
		return w.address()
	}
	press := func(name, shown, button string) {
		page := start(name)
		last = page
		w.Go(runs[name])
		w.awaitText(shown, false)
		w.Go(page)
		w.click(`[data-testid="` + button + `"]`)
		w.Check(t)
		w.Shot("break-it-" + name)
	}
	await := func(names ...string) {
		for _, name := range names {
			w.Go(runs[name])
			w.awaitText("Nothing is left to do", false)
			require.Contains(t, w.text(), says[name], name)
		}
	}
	for _, name := range []string{"429", "529", "refusal", "cut", "bad-json"} {
		start(name)
	}
	press("clock", "Waiting until", "skip-clock")
	await("429", "529", "refusal", "cut", "bad-json", "clock")
	press("kill", "Being written", "kill-worker") // the worker is in the middle of it
	await("kill")
	for _, view := range []browsertest.View{{Width: 390, Dark: true}, {Width: 390}, {Width: 1280, Dark: true}} {
		small := &walker{Page: browser.Open(t, view), t: t, site: program.url}
		small.Go(small.site + "/signin")
		small.click(`[data-testid="as-builder"]`)
		for name, path := range map[string]string{"break-it": home + "/break", "break-it-kill": last} {
			small.Go(path)
			small.Check(t)
			small.Shot(name)
		}
	}
}
