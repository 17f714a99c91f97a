package tenants

import (
	"context"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// How long a code can be used, and how often somebody may mistype it. With the limits
// on asking for codes, an address can be guessed at 100 times a day, against a million
// codes.
const (
	CodeLifetime = 10 * time.Minute
	CodeTries    = 5
)

// ErrBadCode means that the code is wrong, too old, used, or replaced by a newer one;
// a person is not told which.
var ErrBadCode = errors.New("the code is wrong or no longer valid")

// ErrTooManyTries is what every *TooManyTries is.
var ErrTooManyTries = errors.New("too many tries")

// TooManyTries says that somebody must wait before she may ask for a code, or that her
// code was mistyped too often, and how long it takes until she may ask for another.
type TooManyTries struct {
	Wait time.Duration // 0: at once
}

// Error tells the wait.
func (e *TooManyTries) Error() string {
	return fmt.Sprintf("%v; a new code can be asked for in %s", ErrTooManyTries, e.Wait)
}

// Is makes every TooManyTries an ErrTooManyTries.
func (e *TooManyTries) Is(target error) bool { return target == ErrTooManyTries }

// LoginCode is a code that was asked for. Only its row is stored, never its digits.
type LoginCode struct {
	ID      LoginCodeID
	Email   string // where to send it
	Expires time.Time
}

// LoginCodeID identifies a code and, with the server's secret, gives its digits.
type LoginCodeID = IDOf[LoginCode]

// LoginDigits are the six digits of a code. The mail is the only place for them.
func LoginDigits(secret Secret, id LoginCodeID) string {
	token := secret.Derive("login code", id, 0)
	return fmt.Sprintf("%06d", binary.BigEndian.Uint64(token[:8])%1_000_000)
}

// RequestCode makes a code for an address and replaces the codes that were sent there
// before. It never looks for a user, so known and unknown addresses get the same answer
// after the same work. remoteAddr is the IP address of the asking side, with or without
// a port. Errors: *Invalid for what is no address, *TooManyTries.
func RequestCode(ctx context.Context, stx SystemTx, email, remoteAddr string) (LoginCode, error) {
	email, err := ParseEmail(email)
	if err != nil {
		return LoginCode{}, err
	}
	network := networkOf(remoteAddr)
	wait, err := codeWait(ctx, stx, email, network)
	if err != nil {
		return LoginCode{}, err
	}
	if wait > 0 {
		return LoginCode{}, &TooManyTries{Wait: wait}
	}
	code := LoginCode{ID: NewID[LoginCode](), Email: email, Expires: stx.Now.Add(CodeLifetime)}
	_, err = stx.Exec(ctx, `INSERT INTO login_codes (id, email, network, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)`,
		code.ID, email, network, stx.Now, code.Expires)
	if err != nil {
		return LoginCode{}, fmt.Errorf("make a login code: %w", err)
	}
	return code, nil
}

// SignIn is the outcome of a typed code.
type SignIn struct {
	User    User
	First   bool  // she was not known before
	Refused error // ErrBadCode or *TooManyTries, then User is unset
}

// VerifyCode tries a typed code and signs the person in, whom it makes when the address
// is new. A wrong code is no error but a Refused outcome: the try must be committed to
// count, which a transaction that ends in an error is not.
func VerifyCode(ctx context.Context, stx SystemTx, secret Secret, email, digits string) (SignIn, error) {
	email, err := ParseEmail(email)
	digits = onlyDigits(digits)
	if err != nil || len(digits) != 6 {
		return SignIn{Refused: ErrBadCode}, nil
	}
	code, err := takeTry(ctx, stx, email)
	if errors.Is(err, pgx.ErrNoRows) {
		return refuse(ctx, stx, email)
	}
	if err != nil {
		return SignIn{}, fmt.Errorf("count a try of a login code: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(LoginDigits(secret, code)), []byte(digits)) != 1 {
		return SignIn{Refused: ErrBadCode}, nil
	}
	tag, err := stx.Exec(ctx, `UPDATE login_codes SET used_at = $2 WHERE id = $1 AND used_at IS NULL`, code, stx.Now)
	if err != nil {
		return SignIn{}, fmt.Errorf("use up a login code: %w", err)
	}
	if tag.RowsAffected() != 1 {
		return SignIn{Refused: ErrBadCode}, nil
	}
	user, first, err := ensureUser(ctx, stx, email, nameFromEmail(email), "")
	return SignIn{User: user, First: first}, err
}

// newestCode is the only code of an address that counts.
const newestCode = `SELECT id FROM login_codes WHERE email = $1 ORDER BY created_at DESC, id DESC LIMIT 1`

// takeTry counts a try before the code is looked at, so that many at once cannot have
// more than CodeTries between them. No row means that there is no try to be had.
func takeTry(ctx context.Context, stx SystemTx, email string) (LoginCodeID, error) {
	var id LoginCodeID
	err := stx.QueryRow(ctx, `
		UPDATE login_codes SET tries = tries + 1
		WHERE id = (`+newestCode+`) AND used_at IS NULL AND tries < $2 AND expires_at > $3
		RETURNING id`, email, CodeTries, stx.Now).Scan(&id)
	return id, err
}

// refuse tells apart a code that was mistyped too often, since its owner would go on
// typing the right one in vain.
func refuse(ctx context.Context, stx SystemTx, email string) (SignIn, error) {
	var spent bool
	err := stx.QueryRow(ctx, `
		SELECT EXISTS (SELECT 1 FROM login_codes
		WHERE id = (`+newestCode+`) AND used_at IS NULL AND tries >= $2 AND expires_at > $3)`,
		email, CodeTries, stx.Now).Scan(&spent)
	if err != nil {
		return SignIn{}, fmt.Errorf("look for a login code: %w", err)
	}
	if !spent {
		return SignIn{Refused: ErrBadCode}, nil
	}
	wait, err := emailWait(ctx, stx, email)
	return SignIn{Refused: &TooManyTries{Wait: wait}}, err
}

// onlyDigits lets people type a code as the mail shows it, "123 456".
func onlyDigits(text string) string {
	const tooLong = 32
	if len(text) > tooLong {
		return ""
	}
	text = strings.NewReplacer(" ", "", "-", "", "\u00a0", "", "\t", "").Replace(strings.TrimSpace(text))
	if strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' }) {
		return ""
	}
	return text
}
