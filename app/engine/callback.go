package engine

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// CallbackPath is where the addresses begin at which other systems answer.
const CallbackPath = "/hooks/wait/"

// Callbacks derives the one-time addresses at which other systems answer waits. An address
// names its place and proves itself by a code from the server's secret, so it is known
// before the wait is there, and the database keeps its hash only.
type Callbacks struct {
	Secret  tenants.Secret
	BaseURL string // of the pages, without a slash at the end
}

// callbackPlace is the wait that an address is for: that of a step in a frame of a run.
type callbackPlace struct {
	tenant tenants.ID
	run    RunID
	frame  StepRunID // zero at the top
	step   string
}

// Address is where another system answers a wait of a step in a frame of a run.
func (c Callbacks) Address(tenant tenants.ID, run RunID, frame StepRunID, step string) string {
	return c.BaseURL + CallbackPath + c.token(callbackPlace{tenant, run, frame, step})
}

// token is the step's id, a dot, the ids of workspace, run and frame, and the code.
func (c Callbacks) token(p callbackPlace) string {
	code := c.code(p)
	return p.step + "." + base64.RawURLEncoding.EncodeToString(append(p.ids(), code[:]...))
}

func (p callbackPlace) ids() []byte {
	return append(append(append(make([]byte, 0, 80), p.tenant[:]...), p.run[:]...), p.frame[:]...)
}

func (c Callbacks) code(p callbackPlace) [32]byte {
	return c.Secret.Derive("callback "+hex.EncodeToString(p.ids())+" "+p.step, [16]byte(p.run), 0)
}

// callback is the address of a step in a frame of the run, and the key of its answer.
func (d *drive) callback(frame StepRunID, step string) (address, key string) {
	p := callbackPlace{d.tenant, d.run.ID, frame, step}
	return d.Callbacks.Address(p.tenant, p.run, p.frame, p.step), d.Callbacks.key(p)
}

// longestToken is more than a step's id and the rest take.
const longestToken = 200

// read finds the place that a token is for; false where it is none of ours.
func (c Callbacks) read(token string) (callbackPlace, bool) {
	var p callbackPlace
	step, encoded, found := strings.Cut(token, ".")
	if !found || len(token) > longestToken {
		return p, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil || len(raw) != 80 {
		return p, false
	}
	p.step = step
	copy(p.tenant[:], raw)
	copy(p.run[:], raw[16:])
	copy(p.frame[:], raw[32:])
	code := c.code(p)
	return p, hmac.Equal(raw[48:], code[:])
}

// callbackMark is how the keys of events begin that come as answers. Nobody can guess one.
const callbackMark = "answer "

// key is that of the event as which the answer is kept.
func (c Callbacks) key(p callbackPlace) string {
	return callbackMark + hex.EncodeToString(tenants.HashToken(c.token(p)))
}

// IsCallback tells a wait for an answer at an address from one for an event by name.
func IsCallback(eventKey string) bool { return strings.HasPrefix(eventKey, callbackMark) }

// ErrNoCallback tells that nothing waits for an answer at the address, or will: it is not
// one of ours, the wait is over, or another answer came.
var ErrNoCallback = errors.New("nothing waits at this address")

// AnswerCallback takes what another system sent to an address, as JSON. An answer that
// comes before the wait is kept for it, as an event is; the same answer again changes
// nothing. Whatever is wrong with an address is ErrNoCallback; about the data the errors
// are those of SendEvent.
func (e *Engine) AnswerCallback(ctx context.Context, token string, data []byte) error {
	p, ours := e.Callbacks.read(token)
	if !ours {
		return ErrNoCallback
	}
	err := e.DB.InTx(ctx, p.tenant, func(ctx context.Context, tx tenants.Tx) error {
		node, err := e.callbackNode(ctx, tx, p)
		if err != nil {
			return err
		}
		key := eventKey{node.Event().Name, e.Callbacks.key(p)}
		if _, err := tx.Exec(ctx, lockEvents, key.lock(tx.Tenant)); err != nil {
			return fmt.Errorf("lock an answer's key: %w", err)
		}
		if err := stillAwaited(ctx, tx, p.run, key); err != nil {
			return err
		}
		_, err = e.SendEvent(ctx, tx, Event{Name: key.name, Key: key.key, Data: data, Sender: "An answer to “" + node.Step.Name + "”", SenderID: key.key})
		return err
	})
	if errors.Is(err, ErrOtherEvent) {
		return ErrNoCallback
	}
	return err
}

// callbackNode is the step that an address is for, in a run that has not ended.
func (e *Engine) callbackNode(ctx context.Context, tx tenants.Tx, p callbackPlace) (*pipeline.Node, error) {
	run, err := RunByID(ctx, tx, p.run)
	if errors.Is(err, ErrNoRun) {
		return nil, ErrNoCallback
	}
	if err != nil {
		return nil, err
	}
	version, err := pipeline.VersionByNumber(ctx, tx, run.PipelineID, run.Version)
	if err != nil {
		return nil, err
	}
	node := version.Program.Node(p.step)
	if node == nil || node.Event() == nil || !node.Event().Callback {
		return nil, ErrNoCallback
	}
	return node, nil
}

// stillAwaited refuses an answer where its wait is over, unless it is the one that ended
// it, or its run has ended.
func stillAwaited(ctx context.Context, tx tenants.Tx, run RunID, key eventKey) error {
	var over, answered bool
	err := tx.QueryRow(ctx, `
		SELECT r.ended_at IS NOT NULL OR EXISTS (SELECT 1 FROM waits w WHERE w.tenant_id = $1 AND w.run_id = $2 AND w.event_key = $4 AND w.state <> 'open')
				AND NOT EXISTS (SELECT 1 FROM waits w WHERE w.tenant_id = $1 AND w.run_id = $2 AND w.event_key = $4 AND w.state = 'open'),
			EXISTS (SELECT 1 FROM events e WHERE e.tenant_id = $1 AND e.name = $3 AND e.sender_id = $4)
		FROM runs r WHERE r.tenant_id = $1 AND r.id = $2`, tx.Tenant, run, key.name, key.key).Scan(&over, &answered)
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNoCallback
	}
	if err != nil {
		return fmt.Errorf("look whether an answer is awaited: %w", err)
	}
	if over && !answered {
		return ErrNoCallback
	}
	return nil
}
