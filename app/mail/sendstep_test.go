package mail_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/mail"
)

func (b bundle) sendStep(t testing.TB, step mail.Step) (mail.SendResult, error) {
	t.Helper()
	return b.outbox.SendStep(t.Context(), b.db.DB, b.tenant, b.run, b.stepRun, step)
}

func TestStepMailIsSentOnceForItsStepRun(t *testing.T) {
	t.Parallel()
	sender := &recorder{}
	b := setup(t, sender)
	first, err := b.sendStep(t, note())
	require.NoError(t, err)
	require.Equal(t, mail.SendResult{MessageID: sender.sent[0].MessageID}, first)
	again, err := b.sendStep(t, mail.Step{To: []mail.Address{{Email: "other@client.example"}}, Subject: "Other"})
	require.NoError(t, err)
	require.Equal(t, mail.SendResult{MessageID: first.MessageID, Already: true}, again)
	require.Len(t, sender.sent, 1)

	_, b.stepRun = newRun(t, b.db, b.tenant)
	other, err := b.sendStep(t, note())
	require.NoError(t, err)
	require.NotEqual(t, first.MessageID, other.MessageID)
}

func TestStepMailOfADeadCallIsToldAsRepeated(t *testing.T) {
	t.Parallel()
	sender := &recorder{do: func(n int) error {
		if n == 1 {
			panic("killed")
		}
		return nil
	}}
	b := setup(t, sender)
	require.Panics(t, func() { _, _ = b.sendStep(t, note()) })
	result, err := b.sendStep(t, note())
	require.NoError(t, err)
	require.True(t, result.Repeated)
	require.False(t, result.Already)
	require.Equal(t, sender.sent[0], sender.sent[1])
}

func TestStepMailAfterAFailure(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		failure  *mail.SendError
		state    mail.State
		repeated bool
	}{
		"for now":  {&mail.SendError{Message: "busy"}, mail.StateQueued, false},
		"for good": {&mail.SendError{Permanent: true, Message: "refused"}, mail.StateFailed, false},
		"unsure":   {&mail.SendError{Unsure: true, Message: "broke"}, mail.StateSending, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, &recorder{do: func(n int) error {
				if n == 1 {
					return test.failure
				}
				return nil
			}})
			_, err := b.sendStep(t, note())
			var failed *mail.SendError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, test.failure, failed)
			list := b.ofStep(t)
			require.Len(t, list, 1)
			require.Equal(t, test.state, list[0].State)
			require.Zero(t, b.jobs(t, list[0].ID), "the step's own call sends, no job does")

			result, err := b.sendStep(t, note())
			require.NoError(t, err)
			require.Equal(t, test.repeated, result.Repeated)
			require.Equal(t, mail.StateSent, b.ofStep(t)[0].State)
		})
	}
}

func TestStepMailThatCannotBeSentIsRefused(t *testing.T) {
	t.Parallel()
	many := make([]mail.Address, 51)
	for i := range many {
		many[i] = mail.Address{Email: "a@b.example"}
	}
	good := []mail.Address{{Email: "jane@client.example"}}
	tests := map[string]mail.Step{
		"no recipient":    {Subject: "x"},
		"no subject":      {To: good, Subject: " \r\n\t"},
		"no address":      {To: []mail.Address{{Email: "jane"}}, Subject: "x"},
		"two in one":      {To: []mail.Address{{Email: "a@b.example, c@d.example"}}, Subject: "x"},
		"line break":      {To: []mail.Address{{Email: "a@b.example\r\nBcc: c@d.example"}}, Subject: "x"},
		"nul":             {To: []mail.Address{{Email: "a\x00@b.example"}}, Subject: "x"},
		"bad copy":        {To: good, CC: []mail.Address{{Email: "@"}}, Subject: "x"},
		"bad reply":       {To: good, ReplyTo: &mail.Address{Email: "x"}, Subject: "x"},
		"many recipients": {To: many, Subject: "x"},
		"long text":       {To: good, Subject: "x", Text: strings.Repeat("x", 300<<10)},
	}
	sender := &recorder{}
	b := setup(t, sender)
	for name, step := range tests {
		_, err := b.sendStep(t, step)
		require.ErrorIs(t, err, mail.ErrBadMessage, name)
	}
	require.Empty(t, sender.sent)
	require.Empty(t, b.ofStep(t))
}

func TestParseAddressesReadsWhatPeopleWrite(t *testing.T) {
	t.Parallel()
	list, err := mail.ParseAddresses(`"Doe, Jane" <Jane@Client.example>, bob@müller.example`)
	require.NoError(t, err)
	require.Equal(t, []mail.Address{{Name: "Doe, Jane", Email: "jane@client.example"}, {Email: "bob@xn--mller-kva.example"}}, list)
	for _, bad := range []string{"", "jane", "a@b.example\r\nBcc: c@d.example", "<a@b.example", "a@b.example\x00"} {
		_, err := mail.ParseAddresses(bad)
		require.ErrorIs(t, err, mail.ErrBadMessage, "%q", bad)
	}
}
