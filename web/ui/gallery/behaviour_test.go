package gallery

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"tollgate/static"
	"tollgate/web/browsertest"
	"tollgate/web/ui"
)

// TestReviewWeight: the page, its stylesheet and its icons together.
func TestReviewWeight(t *testing.T) {
	t.Parallel()
	var page bytes.Buffer
	packer := gzip.NewWriter(&page)
	require.NoError(t, Review("").Render(context.Background(), packer))
	require.NoError(t, packer.Close())
	total := page.Len() + static.PackedSize("app.css") + static.PackedSize("icons.svg") + static.PackedSize("favicon.svg")
	require.LessOrEqual(t, total, 40<<10)
	t.Logf("review page: %d bytes compressed in all", total)
}

// TestButtonFollowsTheChoice: without any script the button of a review says
// what it will do.
func TestButtonFollowsTheChoice(t *testing.T) {
	t.Parallel()
	page := browsertest.Start(t).Open(t, browsertest.View{Width: 390, NoScript: true})
	page.Go(serve(t).URL + "/review")
	words := func() string {
		return browsertest.Eval[string](page, `document.querySelector("[data-testid=decide]").innerText.trim()`)
	}
	require.Equal(t, "Decide", words())
	page.Do(chromedp.Click(chromedp.CSS("input[value=reject]")))
	require.Equal(t, "Refuse the payments", words())
	page.Do(chromedp.Click(chromedp.CSS("input[value=approve]")))
	require.Equal(t, "Release €118,204.10", words())
	page.Check(t)
}

// TestFaultsTakeTheFocus: after a failed form the summary has the focus, and
// its links lead to the inputs, without any script.
func TestFaultsTakeTheFocus(t *testing.T) {
	t.Parallel()
	page := browsertest.Start(t).Open(t, browsertest.View{Width: 1280, NoScript: true})
	page.Go(serve(t).URL + "/everything")
	require.Equal(t, "faults", browsertest.Eval[string](page, `document.activeElement.dataset.testid`))
	page.Do(chromedp.Click(chromedp.CSS(".faults li:nth-child(2) a")))
	require.Equal(t, "f-bad-mail", browsertest.Eval[string](page, `document.activeElement.id`))
}

// TestKeyboardReachesEverything: the first stop is the skip link, then the
// bar in reading order; every stop is visible and has a ring.
func TestKeyboardReachesEverything(t *testing.T) {
	t.Parallel()
	page := browsertest.Start(t).Open(t, browsertest.View{Width: 1280})
	page.Go(serve(t).URL + "/home")
	const where = `(()=>{const e=document.activeElement,s=getComputedStyle(e),r=e.getBoundingClientRect();
		return e.innerText.trim().split("\n")[0]+"|"+s.outlineStyle+" "+s.outlineWidth+"|"+(r.width>0&&r.height>0&&r.top>=0)})()`
	var stops []string
	for range 10 {
		page.Do(chromedp.KeyEvent("\t"))
		stops = append(stops, browsertest.Eval[string](page, where))
	}
	names := make([]string, len(stops))
	for i, stop := range stops {
		name, rest, _ := strings.Cut(stop, "|")
		names[i] = name
		require.Equal(t, "solid 3px|true", rest, stop)
	}
	require.Equal(t, []string{"Skip to content", "Tollgate", "Workspace:", "Home", "Pipelines", "Runs", "Reviews", "Mailbox", "Settings", "AB"}, names)
}

// TestSecondPressIsSwallowed: a form that was sent is not sent again.
func TestSecondPressIsSwallowed(t *testing.T) {
	t.Parallel()
	var posts atomic.Int32
	mux := http.NewServeMux()
	mux.Handle(static.Prefix, static.Handler())
	mux.HandleFunc("/signin", show(SignIn("")))
	mux.HandleFunc("POST /sign-in", func(w http.ResponseWriter, _ *http.Request) {
		posts.Add(1)
		w.WriteHeader(http.StatusNoContent) // the browser stays on the page
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	page := browsertest.Start(t).Open(t, browsertest.View{Width: 390})
	page.Go(server.URL + "/signin")
	browsertest.Eval[bool](page, `(()=>{const b=document.querySelector("form .primary");b.click();b.click();b.click();return true})()`)
	require.Eventually(t, func() bool { return posts.Load() > 0 }, 20*time.Second, 10*time.Millisecond)
	require.Equal(t, "true", browsertest.Eval[string](page, `document.querySelector("form .primary").getAttribute("aria-disabled")`))
	require.EqualValues(t, 1, posts.Load())
}

// TestLiveRegion: a stream's message is morphed in: rows change, the focus,
// an opened fold and the scroll place stay; title and dot follow; at the end
// the stream closes and is not opened again.
func TestLiveRegion(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	var opened atomic.Int32
	mux := http.NewServeMux()
	mux.Handle(static.Prefix, static.Handler())
	mux.HandleFunc("/run", show(Run("", "/stream")))
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		opened.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		flush := func() { _ = http.NewResponseController(w).Flush() }
		flush()
		for {
			select {
			case message := <-next:
				_, _ = fmt.Fprint(w, message)
				flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	page := browsertest.Start(t).Open(t, browsertest.View{Width: 1280})
	page.Go(server.URL + "/run")
	eventually := func(want, script string) {
		t.Helper()
		require.Eventually(t, func() bool { return browsertest.Eval[string](page, script) == want }, 30*time.Second, 20*time.Millisecond, script)
	}
	eventually("on", `document.documentElement.dataset.live??""`)

	browsertest.Eval[bool](page, `(()=>{document.querySelector("#p-log").open=true;document.querySelector("#s4 th a").focus();scrollTo(0,300);return true})()`)
	body := strings.ReplaceAll(content(t, ui.LiveRegion{ID: "run", Say: "Done", Title: "Done: Storm Ylva #2214"}), "Reserve over", "Reserve of more than")
	next <- "data: " + strings.ReplaceAll(body, "\n", "\ndata: ") + "\n\n"
	eventually("Done: Storm Ylva #2214", `document.title`)
	require.Equal(t, "Reserve of more than €250,000?|true|true|300", browsertest.Eval[string](page,
		`[document.activeElement.innerText,document.activeElement.closest("tr").id==="s4",document.querySelector("#p-log").open,scrollY].join("|")`))
	eventually("Done", `document.getElementById("voice").textContent`)

	next <- "event: end\ndata: \n\n"
	eventually("ended", `document.documentElement.dataset.live`)
	require.EqualValues(t, 1, opened.Load())
	page.Check(t)
}

// content renders one message of the stream of the run page.
func content(t *testing.T, region ui.LiveRegion) string {
	t.Helper()
	var inner, out bytes.Buffer
	require.NoError(t, RunBody().Render(context.Background(), &inner))
	require.NoError(t, region.Content().Render(withChildren(inner.String()), &out))
	return out.String()
}
