package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/mail"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"tollgate/app/apptest/fault"
)

// kills is how often the whole program is killed, and how many runs are under way.
const kills = 20

// The whole program is killed as by a power cut at random moments, its Postgres with
// it: every run ends all the same, nothing is done twice in the record, and a mail that
// went out twice bears one Message-ID and is told.
func TestKillOfEverythingAtRandomMoments(t *testing.T) {
	t.Parallel()
	post := newPostOffice(t)
	data := dataFolder(t)
	env := "TOLLGATE_SMTP_URL=smtp://" + post.addr + "?starttls=off"
	for n := range kills {
		program := startLocal(t, data, env)
		person := signIn(t, program.url)
		person.startSample()
		post.answer(t, program.url)
		time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond) // the random moment
		program.Kill()
		t.Logf("kill %d, %d mails so far", n+1, post.count())
	}
	program := startLocal(t, data, env)
	database := openSuper(t, data)
	defer logOpen(t, database)
	require.Eventually(t, func() bool {
		post.answer(t, program.url)
		return count(t, database, `SELECT count(*) FROM runs WHERE ended_at IS NULL`) == 0
	}, 90*time.Second, 250*time.Millisecond, "runs are open")
	require.GreaterOrEqual(t, count(t, database, `SELECT count(*) FROM runs`), kills)
	requireSoundRecord(t, database)
	post.requireRepeatsAreTold(t, database)
}

// openRuns tells where open runs stand, and why others did not end well, for whoever reads a
// failure.
const openRuns = `
	SELECT format('run %s: step %s %s, try %s, wait %s, slice %s %s, job %s', r.number, s.step_id, s.state, s.attempt,
		(SELECT w.kind FROM waits w WHERE w.step_run_id = s.id AND w.state = 'open'), l.state, l.fence,
		(SELECT j.state FROM river.river_job j WHERE j.id = l.job_id))
	FROM runs r LEFT JOIN step_runs s ON s.run_id = r.id AND s.state IN ('running', 'waiting')
	LEFT JOIN slices l ON l.run_id = r.id WHERE r.ended_at IS NULL
	UNION ALL SELECT format('run %s: %s, %s', number, state, failure) FROM runs WHERE ended_at IS NOT NULL AND state <> 'completed'`

func logOpen(t *testing.T, database *pgx.Conn) {
	rows, err := database.Query(context.Background(), openRuns)
	if err != nil {
		return
	}
	lines, _ := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, line := range lines {
		t.Log(line)
	}
}

// requireSoundRecord checks what must hold of the rows, whatever happened on the way.
func requireSoundRecord(t *testing.T, database fault.Querier) {
	t.Helper()
	for what, query := range map[string]string{
		"runs that did not end well":        `SELECT count(*) FROM runs WHERE state <> 'completed'`,
		"steps that are open":               `SELECT count(*) FROM step_runs WHERE ended_at IS NULL`,
		"steps that were finished twice":    `SELECT count(*) FROM (SELECT 1 FROM tries WHERE outcome = 'done' GROUP BY tenant_id, step_run_id HAVING count(*) > 1) twice`,
		"outside steps without a done try":  `SELECT count(*) FROM step_runs s WHERE kind IN ('ai', 'email') AND state = 'done' AND NOT EXISTS (SELECT 1 FROM tries a WHERE a.tenant_id = s.tenant_id AND a.step_run_id = s.id AND a.outcome = 'done')`,
		"steps that exist twice":            `SELECT count(*) FROM (SELECT 1 FROM step_runs GROUP BY tenant_id, run_id, parent_id, step_id, turn HAVING count(*) > 1) twice`,
		"waits that are open":               `SELECT count(*) FROM waits WHERE state = 'open'`,
		"slices that are left":              `SELECT count(*) FROM slices`,
		"money that is held":                `SELECT count(*) FROM holds WHERE state = 'open'`,
		"seats without exactly one mail":    `SELECT count(*) FROM seats s WHERE (SELECT count(*) FROM mails m WHERE m.seat_id = s.id AND m.kind = 'review_request') <> 1`,
		"e-mail steps without one mail":     `SELECT count(*) FROM step_runs s WHERE kind = 'email' AND (SELECT count(*) FROM mails m WHERE m.step_run_id = s.id AND m.kind = 'step') <> 1`,
		"calls that were charged twice":     `SELECT count(*) FROM (SELECT 1 FROM charges GROUP BY tenant_id, step_run_id, attempt HAVING count(*) > 1) twice`,
		"tries beside the count of the row": `SELECT count(*) FROM step_runs s WHERE kind IN ('ai', 'email') AND attempt <> (SELECT count(*) FROM tries a WHERE a.tenant_id = s.tenant_id AND a.step_run_id = s.id)`,
	} {
		require.Zero(t, count(t, database, query), what)
	}
}

// postOffice is a mail server that keeps what it is given, and a person who answers
// every request by its link.
type postOffice struct {
	addr string

	mu       sync.Mutex
	mails    []received
	answered map[string]bool // links
}

type received struct{ id, link string }

func newPostOffice(t *testing.T) *postOffice {
	t.Helper()
	p := &postOffice{answered: map[string]bool{}}
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p.addr = socket.Addr().String()
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return letterbox{p}, nil }))
	server.Domain = "localhost"
	go func() { _ = server.Serve(socket) }()
	t.Cleanup(func() { _ = server.Close() })
	return p
}

type letterbox struct{ office *postOffice }

func (letterbox) Mail(string, *smtp.MailOptions) error { return nil }
func (letterbox) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (letterbox) Reset()                               {}
func (letterbox) Logout() error                        { return nil }

var linkPattern = regexp.MustCompile(`/r/[A-Za-z0-9_-]{43}`)

// Data keeps the mail before it says so: a sender that dies now has sent it.
func (l letterbox) Data(r io.Reader) error {
	message, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(message.Body)
	if err != nil {
		return err
	}
	text := strings.ReplaceAll(string(body), "=\r\n", "") // quoted-printable breaks long lines
	l.office.mu.Lock()
	defer l.office.mu.Unlock()
	l.office.mails = append(l.office.mails, received{message.Header.Get("Message-Id"), linkPattern.FindString(text)})
	return nil
}

func (p *postOffice) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.mails)
}

// answer approves by each link that was not answered yet. While the program is dying
// an answer may be lost; it is given again next time.
func (p *postOffice) answer(t *testing.T, site string) {
	t.Helper()
	p.mu.Lock()
	mails := append([]received(nil), p.mails...)
	p.mu.Unlock()
	for _, m := range mails {
		if m.link == "" || p.answered[m.link] {
			continue
		}
		if newPerson(t, site).approve(m.link) {
			p.answered[m.link] = true
		}
	}
}

// requireRepeatsAreTold checks that whatever arrived more than once bears one id, and
// that the record tells of a repeated try.
func (p *postOffice) requireRepeatsAreTold(t *testing.T, database fault.Querier) {
	t.Helper()
	arrived := map[string]int{}
	for _, m := range p.mails {
		arrived[strings.Trim(m.id, "<>")]++
	}
	repeats := 0
	for id, times := range arrived {
		require.Equal(t, 1, count(t, database, `SELECT count(*) FROM mails WHERE message_id = $1`, id), "a mail that nobody queued: %s", id)
		if times == 1 {
			continue
		}
		repeats++
		told := count(t, database, `SELECT count(*) FROM mails m WHERE message_id = $1 AND (
			m.kind <> 'step' AND m.attempt > 1 OR EXISTS (SELECT 1 FROM step_runs s WHERE s.id = m.step_run_id AND s.attempt > 1 AND s.note LIKE '%twice%'))`, id)
		require.Equal(t, 1, told, "%s arrived %d times and the record does not say so", id, times)
	}
	t.Logf("%d mails arrived, %d of them more than once", len(arrived), repeats)
}

// person is somebody at a browser without scripts.
type person struct {
	t      *testing.T
	site   string
	client *http.Client
}

func newPerson(t *testing.T, site string) *person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return &person{t: t, site: site, client: &http.Client{Jar: jar, Timeout: 30 * time.Second}}
}

func signIn(t *testing.T, site string) *person {
	t.Helper()
	p := newPerson(t, site)
	page, _, err := p.get("/signin")
	require.NoError(t, err)
	form := formWith(page, "as-builder")
	require.NotNil(t, form)
	_, _, err = p.send(form, nil)
	require.NoError(t, err)
	return p
}

// startSample runs the sample of the first template.
func (p *person) startSample() {
	p.t.Helper()
	home, address, err := p.get("/")
	require.NoError(p.t, err)
	require.Contains(p.t, address, "/w/", "%v", home)
	page, _, err := p.get(address + "/templates")
	require.NoError(p.t, err)
	form := formWith(page, "try-customer-email")
	require.NotNil(p.t, form)
	_, address, err = p.send(form, nil)
	require.NoError(p.t, err)
	require.Contains(p.t, address, "/runs/")
}

// approve answers by a link, and tells whether the page says that it was taken, now or
// before, by this seat or another.
func (p *person) approve(link string) bool {
	page, _, err := p.get(link)
	if err != nil {
		return false
	}
	form := formWith(page, "decide")
	if form == nil {
		return true // already decided
	}
	_, _, err = p.send(form, url.Values{"choice": {"approve"}})
	return err == nil
}

func (p *person) get(path string) (*html.Node, string, error) {
	if !strings.HasPrefix(path, "http") {
		path = p.site + path
	}
	response, err := p.client.Get(path)
	if err != nil {
		return nil, "", err
	}
	return read(response)
}

// form is a form of a page, ready to be sent.
type form struct {
	action string
	values url.Values
}

func (p *person) send(f *form, typed url.Values) (*html.Node, string, error) {
	for name, values := range typed {
		f.values[name] = values
	}
	request, err := http.NewRequest(http.MethodPost, p.site+f.action, strings.NewReader(f.values.Encode()))
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", p.site)
	response, err := p.client.Do(request)
	if err != nil {
		return nil, "", err
	}
	return read(response)
}

func read(response *http.Response) (*html.Node, string, error) {
	defer response.Body.Close()
	page, err := html.Parse(response.Body)
	if refused := response.StatusCode >= http.StatusBadRequest; err == nil && refused {
		err = fmt.Errorf("status %d", response.StatusCode)
	}
	return page, response.Request.URL.String(), err
}

// formWith finds the form that holds the button with a test id.
func formWith(page *html.Node, testID string) *form {
	for node := range page.Descendants() {
		if node.Data != "form" {
			continue
		}
		found := &form{action: attribute(node, "action"), values: url.Values{}}
		holds := false
		for field := range node.Descendants() {
			if attribute(field, "data-testid") == testID {
				holds = true
			}
			switch name := attribute(field, "name"); {
			case name == "":
			case field.Data == "input" && attribute(field, "type") != "radio":
				found.values.Add(name, attribute(field, "value"))
			case field.Data == "textarea" && field.FirstChild != nil:
				found.values.Add(name, field.FirstChild.Data)
			}
		}
		if holds {
			return found
		}
	}
	return nil
}

func attribute(node *html.Node, name string) string {
	for _, a := range node.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// openSuper connects to the local database as a role that sees all rows.
func openSuper(t *testing.T, data string) *pgx.Conn {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(data, "passwords.json"))
	require.NoError(t, err)
	var passwords struct{ Super string }
	require.NoError(t, json.Unmarshal(text, &passwords))
	pid, err := os.ReadFile(filepath.Join(data, "postgres", "postmaster.pid"))
	require.NoError(t, err)
	port := strings.Split(string(pid), "\n")[3]
	conn, err := pgx.Connect(t.Context(), "postgres://postgres:"+url.QueryEscape(passwords.Super)+"@127.0.0.1:"+port+"/tollgate?sslmode=disable")
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func count(t *testing.T, conn fault.Querier, query string, args ...any) int {
	t.Helper()
	var n int
	require.NoError(t, conn.QueryRow(t.Context(), query, args...).Scan(&n), query)
	return n
}
