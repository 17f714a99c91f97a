package engine_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/mail"
	"tollgate/app/pipeline"
	"tollgate/jobs"
	"tollgate/tenants"
)

// post keeps the mails that go out.
type post struct {
	mu   sync.Mutex
	sent []mail.Composed
}

func (p *post) Send(_ context.Context, composed mail.Composed) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, composed)
	return nil
}

// A file comes with the run's input, goes to another system as it is, another one comes
// back, and both go out with a mail.
func TestFilesGoThroughStepsAndOutWithAMail(t *testing.T) {
	t.Parallel()
	var uploaded []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		uploaded, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/pdf")
		_, _ = io.WriteString(w, "%PDF-1.7")
	}))
	t.Cleanup(server.Close)
	h := callingHouse(t, server.URL)
	out := h.deliverTo(&post{})
	h.work()
	id := h.publish(fmt.Sprintf(`{"semantics": 3, "name": "Convert", "input": [{"name": "list", "label": "List", "type": "file", "required": true}], "steps": [
		{"id": "convert", "name": "Convert", "kind": "http", "with": {"method": "POST", "url": "%s/convert/report.pdf", "body": "input.list", "send": "file", "answer": "file"}},
		{"id": "tell", "name": "Tell", "kind": "email", "with": {"to": ["kim@example.com"], "subject": "Report", "body": "Here it is.", "attachments": ["input.list", "[steps.convert.body]"]}}]}`, server.URL))
	run := h.startWithFile(id, "orders.csv", "a,b\n1,2\n")
	p := h.awaitEnd(run)
	require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
	require.Equal(t, "a,b\n1,2\n", string(uploaded))
	require.Len(t, out.sent, 1)
	require.Len(t, out.sent[0].Attachments, 2)
	require.Equal(t, []string{"orders.csv", "a,b\n1,2\n"}, []string{out.sent[0].Attachments[0].Name, string(out.sent[0].Attachments[0].Data)})
	require.Equal(t, []string{"report.pdf", "%PDF-1.7"}, []string{out.sent[0].Attachments[1].Name, string(out.sent[0].Attachments[1].Data)})
}

// Who can write a value can write a digest, too: only files of the run itself go out.
func TestFilesOfAnotherRunDoNotGoOut(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	out := h.deliverTo(&post{})
	h.work()
	id := h.publish(`{"semantics": 3, "name": "Keep", "input": [{"name": "list", "label": "List", "type": "file", "required": true}], "steps": [
		{"id": "x", "name": "X", "kind": "set", "with": {"values": [{"name": "x", "formula": "1"}]}}]}`)
	h.awaitEnd(h.startWithFile(id, "secret.csv", "a\nsecret\n"))
	digest := engine.DigestOf([]byte("a\nsecret\n")).String()
	thief := h.publish(fmt.Sprintf(`{"semantics": 3, "name": "Thief", "input": [{"name": "n", "type": "number", "required": true}], "steps": [
		{"id": "tell", "name": "Tell", "kind": "email", "with": {"to": ["kim@example.com"], "subject": "Report", "body": "Here it is.",
			"attachments": ["{\"name\": \"x.csv\", \"type\": \"text/csv\", \"digest\": \"%s\"}"]}}]}`, digest))
	p := h.awaitEnd(h.start(thief, `{"n": 1}`))
	require.Equal(t, engine.RunFailed, p.Run.State)
	require.Equal(t, "bad_message", p.Run.Failure.Class)
	require.Contains(t, p.Run.Failure.Message, "no file of this run")
	require.Empty(t, out.sent)
}

// deliverTo hands the mails of steps to a sender of the test's own.
func (h *house) deliverTo(sender *post) *post {
	h.t.Helper()
	inserter, err := jobs.NewInserter(h.db.DB)
	require.NoError(h.t, err)
	outbox, err := mail.New(mail.Config{Sender: sender, Inserter: inserter, From: mail.Address{Email: "tollgate@example.com"}, Links: mail.Links{Secret: h.secret, BaseURL: "http://tollgate.example"}})
	require.NoError(h.t, err)
	h.engine.Callers[pipeline.KindEmail] = jobs.Email{DB: h.db.DB, Outbox: outbox}
	return sender
}

func (h *house) startWithFile(id pipeline.ID, name, content string) (run engine.RunID) {
	h.t.Helper()
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		p, err := pipeline.ByID(ctx, tx, id)
		if err != nil {
			return err
		}
		input, files, problems := pipeline.ParseInput(p.Draft.Input, pipeline.Form{Files: map[string]pipeline.Upload{"list": {Name: name, Data: []byte(content)}}})
		require.Empty(h.t, problems)
		started, err := h.engine.Start(ctx, tx, engine.StartRequest{Pipeline: id, Input: input, Files: files, By: h.owner, Key: tenants.NewID[int]().String()})
		run = started.Run.ID
		return err
	})
	return run
}
