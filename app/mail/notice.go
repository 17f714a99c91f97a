package mail

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Notice tells the people of a pipeline that its runs are in trouble, or that it is over.
// It leads to pages for members, who sign in there.
type Notice struct {
	Pipeline string       `json:"pipeline"`
	Items    []NoticeItem `json:"items"`    // one for each cause, at least one
	More     int          `json:"more"`     // causes that the mail has no room for
	Settings string       `json:"settings"` // path of the page on which one chooses what to be told of
}

// NoticeItem is one cause.
type NoticeItem struct {
	Words  string    `json:"words"` // "14 runs failed at “Draft the reply”: …"
	More   int       `json:"more"`  // of these, since the last mail; 0: this is the first
	Over   bool      `json:"over"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
	Advice string    `json:"advice"`
	Path   string    `json:"path"` // of the page with the runs
}

// mailItems bounds how many causes a mail tells.
const mailItems = 8

// noticePath is what an address of ours looks like, without a host.
var noticePath = regexp.MustCompile(`^/w/[0-9a-f-]{36}(/[A-Za-z0-9._~%-]+)*(\?[A-Za-z0-9._~%&=+-]*)?$`)

func (Notice) kind() Kind { return KindNotice }

func (n Notice) cleaned() (Body, error) {
	if len(n.Items) == 0 {
		return nil, fmt.Errorf("%w: it tells nothing", ErrBadMessage)
	}
	items := n.Items
	if len(items) > mailItems {
		items, n.More = items[:mailItems], len(items)-mailItems
	}
	n.Items = nil
	for _, item := range items {
		if !noticePath.MatchString(item.Path) {
			return nil, fmt.Errorf("%w: it leads to no page", ErrBadMessage)
		}
		item.Words, item.Advice = line(item.Words, mailLine), line(item.Advice, mailLine)
		n.Items = append(n.Items, item)
	}
	if !noticePath.MatchString(n.Settings) {
		return nil, fmt.Errorf("%w: it leads to no page", ErrBadMessage)
	}
	n.Pipeline = line(n.Pipeline, maxName)
	return n, nil
}

// subject begins with the pipeline: that is what its people sort by.
func (n Notice) subject() string {
	words := n.Items[0].Words
	if n.Items[0].Over {
		words = "over: " + words
	}
	if others := len(n.Items) + n.More - 1; others > 0 {
		words += ", and " + strconv.Itoa(others) + " more"
	}
	return line(n.Pipeline+": "+words, maxSubject)
}

func (Notice) giveUp(now time.Time) time.Time { return now.Add(patience) }

func (n Notice) compose(c composing) (parts, error) {
	page := noticePage{Notice: n, page: c.page(n.subject(), n.Items[0].Advice, "Runs, sent with "+product), Choose: c.links.BaseURL + n.Settings}
	for _, item := range n.Items {
		one := noticeLine{NoticeItem: item, Link: c.links.BaseURL + item.Path}
		one.Since = when(item.First, c.now.Year(), "")
		if item.Last.Sub(item.First) > time.Minute {
			one.Until = when(item.Last, c.now.Year(), "")
		}
		page.Lines = append(page.Lines, one)
	}
	return c.render("notice", c.workspace, page)
}

type noticePage struct {
	Notice
	page
	Lines  []noticeLine
	Choose string
}

type noticeLine struct {
	NoticeItem
	Since, Until string
	Link         string
}
