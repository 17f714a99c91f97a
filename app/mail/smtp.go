package mail

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"strconv"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// smtpTimeout bounds each of dialling and talking. A server that takes longer is tried
// again later.
const smtpTimeout = 30 * time.Second

// SMTP sends through a mail server, with a connection for each mail.
type SMTP struct {
	host    string
	options []gomail.Option
}

// NewSMTP reads where the mail server is:
//
//	smtp://user:password@host:587                 STARTTLS is required
//	smtp://user:password@host:587?starttls=…      required, optional or off
//	smtps://user:password@host:465                TLS from the first byte
//
// Without a port it is 587 or 465. On a loopback host STARTTLS is optional unless
// something else is said. helo is the name to greet with. The error never repeats the
// URL, which may hold a password.
func NewSMTP(address, helo string) (*SMTP, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "smtp" && u.Scheme != "smtps" {
		return nil, errors.New("the mail server's address must look like smtp://user:password@host:587 or smtps://user:password@host:465")
	}
	options := []gomail.Option{gomail.WithTimeout(smtpTimeout), gomail.WithHELO(helo)}
	if u.Scheme == "smtps" {
		options = append(options, gomail.WithSSL(), gomail.WithPort(465))
	} else {
		policy, err := tlsPolicy(u)
		if err != nil {
			return nil, err
		}
		options = append(options, gomail.WithTLSPolicy(policy), gomail.WithPort(587))
	}
	if text := u.Port(); text != "" {
		port, err := strconv.Atoi(text)
		if err != nil || port < 1 || port > 65535 {
			return nil, fmt.Errorf("%q is no port of a mail server", text)
		}
		options = append(options, gomail.WithPort(port))
	}
	if name := u.User.Username(); name != "" {
		password, _ := u.User.Password()
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(name), gomail.WithPassword(password))
	}
	if _, err := gomail.NewClient(u.Hostname(), options...); err != nil {
		return nil, fmt.Errorf("the mail server's address cannot be used: %w", err)
	}
	return &SMTP{host: u.Hostname(), options: options}, nil
}

func tlsPolicy(u *url.URL) (gomail.TLSPolicy, error) {
	switch said := u.Query().Get("starttls"); said {
	case "required":
		return gomail.TLSMandatory, nil
	case "optional":
		return gomail.TLSOpportunistic, nil
	case "off":
		return gomail.NoTLS, nil
	case "":
		if host := u.Hostname(); host == "localhost" || host == "127.0.0.1" || host == "::1" {
			return gomail.TLSOpportunistic, nil
		}
		return gomail.TLSMandatory, nil
	default:
		return 0, fmt.Errorf("starttls=%s of the mail server's address must be required, optional or off", line(said, maxName))
	}
}

// Send hands the mail over. All recipients are taken or none.
func (s *SMTP) Send(ctx context.Context, composed Composed) error {
	message, err := composed.message()
	if err != nil {
		return &SendError{Permanent: true, Message: "The mail cannot be written.", Err: err}
	}
	client, err := gomail.NewClient(s.host, s.options...)
	if err != nil {
		return &SendError{Message: "The mail server's address cannot be used.", Err: err}
	}
	connection, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return &SendError{Message: "The mail server cannot be reached.", Err: err}
	}
	// Closing says QUIT; when the mail was taken, a server that hangs up instead is
	// no failure.
	defer func() { _ = client.CloseWithSMTPClient(connection) }()
	err = client.SendWithSMTPClient(connection, message)
	if err == nil || message.IsDelivered() {
		return nil
	}
	return classed(err)
}

// classed reads the class from the server's answer: 4xx is for now, 5xx for good. With
// no answer to the end of the data nobody knows whether the mail was taken.
func classed(err error) *SendError {
	var failed *gomail.SendError
	if !errors.As(err, &failed) {
		return &SendError{Message: "The mail server did not take the mail.", Err: err}
	}
	answered := failed.ErrorCode() >= 400
	if !answered {
		ending := failed.Reason == gomail.ErrSMTPDataClose || failed.Reason == gomail.ErrAmbiguous
		return &SendError{Unsure: ending, Message: "The connection to the mail server broke.", Err: err}
	}
	out := &SendError{Permanent: failed.ErrorCode() >= 500, Err: err, Message: "The mail server did not take the mail."}
	if failed.Reason == gomail.ErrSMTPRcptTo {
		out.Message = "The mail server refused a recipient."
	}
	return out
}

// message writes the mail for the wire. Names and subject are single plain lines by
// now, and go-mail encodes whatever is not ASCII.
func (c Composed) message() (*gomail.Msg, error) {
	message := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	message.FromMailAddress(c.From.header())
	message.ToMailAddress(headers(c.To)...)
	if len(c.CC) > 0 {
		message.CcMailAddress(headers(c.CC)...)
	}
	if c.ReplyTo != nil {
		message.ReplyToMailAddress(c.ReplyTo.header())
	}
	message.Subject(c.Subject)
	message.SetMessageIDWithValue(c.MessageID)
	message.SetDateWithValue(c.Date)
	message.SetGenHeader("Auto-Submitted", "auto-generated")
	message.SetGenHeader(gomail.HeaderXAutoResponseSuppress, "All")
	message.SetBodyString(gomail.TypeTextPlain, c.Text)
	message.AddAlternativeString(gomail.TypeTextHTML, c.HTML)
	if _, err := message.GetRecipients(); err != nil {
		return nil, err
	}
	return message, c.attach(message)
}

func headers(list []Address) []*mail.Address {
	out := make([]*mail.Address, 0, len(list))
	for _, address := range list {
		out = append(out, address.header())
	}
	return out
}
