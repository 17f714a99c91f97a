package web

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A mail that does not get through is told where its step is: whoever waits for an answer
// must know that nobody was asked.
func TestTroubleWithDeliveryIsToldOnTheRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.start(s.home, s.publish(s.home, askingDocument("Press")), map[string]string{"topic": "the shop"}).ID
	s.work()
	path := s.at("runs", run.String())
	viewer := s.in("viewer")
	viewer.get(path).is(http.StatusOK).says("Delivery", "1 of 1 sent", "Taken by the mail server", "Message-ID")
	super := s.db.Super(t)
	_, err := super.Exec(t.Context(), `UPDATE mails SET state = 'queued', sent_at = NULL, attempt = 3, last_error = 'The mail server cannot be reached.', next_try_at = now() + interval '5 minutes' WHERE run_id = $1`, run)
	require.NoError(t, err)
	viewer.get(path).is(http.StatusOK).says("0 of 1 sent", "Not sent yet, try 3: The mail server cannot be reached. The next try is")
	_, err = super.Exec(t.Context(), `UPDATE mails SET state = 'failed', last_error = 'The mail server refused a recipient.' WHERE run_id = $1`, run)
	require.NoError(t, err)
	viewer.get(path).is(http.StatusOK).says("Not delivered, try 3: The mail server refused a recipient. Nothing more is tried. Check the address.")
}
