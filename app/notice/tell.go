package notice

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"time"

	"tollgate/app/mail"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// apart is how long a pipeline's people are left alone between two mails.
const apart = 10 * time.Minute

// news is a notice with what is told of it.
type news struct {
	Notice
	step
	Step string // name of the step that it is about
	Runs int    // that are told of now
}

// tell tells what is to be told now, all of a pipeline together.
func (r *Room) tell(ctx context.Context, tx tenants.Tx) error {
	due, err := notices(ctx, tx, `ended_at IS NULL AND look_at <= now() ORDER BY pipeline_id, first_at LIMIT 500 FOR UPDATE`)
	if err != nil {
		return err
	}
	for len(due) > 0 {
		of := due[0].Pipeline
		n := slices.IndexFunc(due, func(other Notice) bool { return other.Pipeline != of })
		if n < 0 {
			n = len(due)
		}
		if err := r.tellOf(ctx, tx, of, due[:n]); err != nil {
			return err
		}
		due = due[n:]
	}
	return nil
}

// tellOf goes through the notices of one pipeline that are due.
func (r *Room) tellOf(ctx context.Context, tx tenants.Tx, of pipeline.ID, due []Notice) error {
	var lately *time.Time
	err := tx.QueryRow(ctx, `SELECT max(told_at) FROM notices WHERE tenant_id = $1 AND pipeline_id = $2 AND told_at > now() - $3::interval`, tx.Tenant, of, apart).Scan(&lately)
	if err != nil {
		return fmt.Errorf("look when people were last told: %w", err)
	}
	settings, err := SettingsOf(ctx, tx, of)
	if err != nil {
		return err
	}
	var all []news
	for _, n := range due {
		still, err := stillIn(ctx, tx, n)
		if err != nil {
			return err
		}
		became := next(n, still, tx.Now)
		if became.tell != "" && lately != nil {
			became = step{look: lately.Add(apart)}
		}
		if became.tell != "" && slices.Contains(settings.Kinds, n.Kind) {
			all = append(all, news{Notice: n, step: became, Step: stepName(ctx, tx, n), Runs: n.Runs - n.Told})
		}
		if err := note(ctx, tx, n, became); err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return nil
	}
	return r.send(ctx, tx, of, settings, all)
}

// stillIn counts the runs of a notice that are in its trouble now, up to 1,000.
func stillIn(ctx context.Context, tx tenants.Tx, n Notice) (int, error) {
	var still int
	err := tx.QueryRow(ctx, `
		SELECT count(*) FROM (
			SELECT FROM notice_runs i JOIN runs r ON r.tenant_id = i.tenant_id AND r.id = i.run_id
			WHERE i.tenant_id = $1 AND i.notice_id = $2 AND CASE $3
				WHEN 'failed' THEN r.state = 'failed'
				WHEN 'stuck' THEN r.ended_at IS NULL AND EXISTS (SELECT FROM watch_findings f
					WHERE f.tenant_id = r.tenant_id AND f.run_id = r.id AND f.kind = $4 AND NOT f.repaired AND f.last_at > now() - $5::interval)
				ELSE r.ended_at IS NULL AND EXISTS (SELECT FROM waits w
					WHERE w.tenant_id = r.tenant_id AND w.run_id = r.id AND w.state = 'open' AND w.kind = CASE $3 WHEN 'capped' THEN 'cap' ELSE 'review' END) END
			LIMIT 1000) counted`, tx.Tenant, n.ID, string(n.Kind), n.Class, calm).Scan(&still)
	if err != nil {
		return 0, fmt.Errorf("count the runs that are still in trouble: %w", err)
	}
	return still, nil
}

// note writes down what became of a notice.
func note(ctx context.Context, tx tenants.Tx, n Notice, became step) error {
	told, at := n.Told, n.ToldAt
	if became.tell != "" {
		told, at = n.Runs, &tx.Now
	}
	var ended *time.Time
	if became.ended {
		ended = &tx.Now
	}
	_, err := tx.Exec(ctx, `UPDATE notices SET told_runs = $3, told_at = $4, look_at = $5, ended_at = $6 WHERE tenant_id = $1 AND id = $2 AND ended_at IS NULL`,
		tx.Tenant, n.ID, told, at, became.look, ended)
	if err != nil {
		return fmt.Errorf("note what was told: %w", err)
	}
	return nil
}

// stepName is the name of the step that a notice is about, as its sample run has it. A
// notice is told without one rather than not at all.
func stepName(ctx context.Context, tx tenants.Tx, n Notice) string {
	if n.StepID == "" {
		return ""
	}
	var version int
	if err := tx.QueryRow(ctx, `SELECT version FROM runs WHERE tenant_id = $1 AND id = $2`, tx.Tenant, n.Sample).Scan(&version); err != nil {
		return ""
	}
	found, err := pipeline.VersionByNumber(ctx, tx, n.Pipeline, version)
	if err != nil || found.Program.Node(n.StepID) == nil {
		return ""
	}
	return found.Program.Node(n.StepID).Step.Name
}

// send queues the mails and the message to another system.
func (r *Room) send(ctx context.Context, tx tenants.Tx, of pipeline.ID, settings Settings, all []news) error {
	one, err := pipeline.ByID(ctx, tx, of)
	if err != nil {
		return err
	}
	body := r.mailOf(tx.Tenant, one, all)
	people, err := Recipients(ctx, tx, settings)
	if err != nil {
		return err
	}
	for _, person := range people {
		if _, err := r.Outbox.Queue(ctx, tx, mail.Message{To: mail.Address{Name: person.Name, Email: person.Email}, Body: body}); err != nil {
			return err
		}
	}
	if settings.HookURL == "" {
		return nil
	}
	for _, n := range all {
		if err := r.queueHook(ctx, tx, settings, one, n); err != nil {
			return err
		}
	}
	return nil
}

// mailOf is what people are told by mail.
func (r *Room) mailOf(tenant tenants.ID, one pipeline.Pipeline, all []news) mail.Notice {
	body := mail.Notice{Pipeline: one.Name, Settings: r.Path(tenant, "pipelines", one.ID.String(), "told")}
	for _, n := range all {
		item := mail.NoticeItem{Words: n.words(n.Runs, n.Step, false), First: n.FirstAt, Last: n.LastAt, Advice: advice[n.Kind], Path: r.runsPath(tenant, n.Notice)}
		if n.Told > 0 {
			item.Words = n.words(n.Notice.Runs, n.Step, n.tell == tellOver)
			item.More = n.Runs
		}
		item.Over = n.tell == tellOver
		body.Items = append(body.Items, item)
	}
	return body
}

// runsPath is the page with the runs of a notice.
func (r *Room) runsPath(tenant tenants.ID, n Notice) string {
	query := url.Values{"pipeline": {n.Pipeline.String()}}
	switch n.Kind {
	case Failed:
		query.Set("state", "failed")
		query.Set("class", n.Class)
	case Capped:
		query.Set("state", "capped")
	case Exception:
		query.Set("state", "person")
	default:
		query.Set("state", "open")
	}
	return r.Path(tenant, "runs") + "?" + query.Encode()
}

// hookBody is what another system is told.
type hookBody struct {
	Type      string    `json:"type"` // "runs.failed.begun"
	Timestamp time.Time `json:"timestamp"`
	Data      hookData  `json:"data"`
}

type hookData struct {
	Notice   ID `json:"notice_id"`
	Pipeline struct {
		ID   pipeline.ID `json:"id"`
		Name string      `json:"name"`
	} `json:"pipeline"`
	Words   string    `json:"words"`
	Class   string    `json:"class,omitempty"`
	StepID  string    `json:"step_id,omitempty"`
	Runs    int       `json:"runs"`     // in all
	New     int       `json:"new_runs"` // since the last message
	FirstAt time.Time `json:"first_at"`
	LastAt  time.Time `json:"last_at"`
	URL     string    `json:"url"`
}

func (r *Room) hookOf(tx tenants.Tx, one pipeline.Pipeline, n news) ([]byte, error) {
	body := hookBody{Type: "runs." + string(n.Kind) + "." + string(n.tell), Timestamp: tx.Now.UTC(), Data: hookData{
		Notice: n.ID, Words: n.words(n.Notice.Runs, n.Step, n.tell == tellOver), Class: n.Class, StepID: n.StepID, Runs: n.Notice.Runs, New: n.Runs,
		FirstAt: n.FirstAt.UTC(), LastAt: n.LastAt.UTC(), URL: r.Host + r.runsPath(tx.Tenant, n.Notice),
	}}
	body.Data.Pipeline.ID, body.Data.Pipeline.Name = one.ID, one.Name
	return json.Marshal(body)
}
