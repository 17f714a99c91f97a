package migrations

// Owners says which room writes each table. Other rooms may read a table, but change
// its rows only by calling the owner, so that a rule about them stands in one place. A
// test compares the map with the database and with the statements in the code.
var Owners = map[string]string{
	"tenants":        "tenants",
	"users":          "tenants",
	"members":        "tenants",
	"login_codes":    "tenants",
	"sessions":       "tenants",
	"audit_entries":  "tenants",
	"tenant_quotas":  "tenants",
	"tenant_secrets": "tenants",
	"provider_keys":  "tenants",

	"pipelines":         "app/pipeline",
	"pipeline_versions": "app/pipeline",
	"draft_edits":       "app/pipeline",

	"stored_values":       "app/engine",
	"stored_value_chunks": "app/engine",
	"runs":                "app/engine",
	"run_values":          "app/engine",
	"run_suppressed":      "app/engine",
	"bulk_jobs":           "app/engine",
	"bulk_runs":           "app/engine",
	"step_runs":           "app/engine",
	"attempts":            "app/engine",
	"waits":               "app/engine",
	"slices":              "app/engine",
	"tenant_turns":        "app/engine",
	"workers":             "app/engine",
	"watch_findings":      "app/engine",
	"events":              "app/engine",
	"event_uses":          "app/engine",
	"step_results":        "app/engine",
	"fresh_runs":          "app/engine",
	"run_moves":           "app/engine",
	"run_search":          "app/engine",
	"run_shares":          "app/engine",
	"share_settings":      "app/engine",
	"live_texts":          "app/engine",
	"replays":             "app/engine",

	"caps":          "billing/ledger",
	"balances":      "billing/ledger",
	"holds":         "billing/ledger",
	"charges":       "billing/ledger",
	"prices":        "billing/ledger",
	"price_aliases": "billing/ledger",
	"corrections":   "billing/ledger",
	"cap_alerts":    "billing/ledger",
	"usage_days":    "billing/ledger",
	"usage_until":   "billing/ledger",
	"price_lists":   "billing/ledger",

	"rate_buckets":   "billing/ledger",
	"rate_tickets":   "billing/ledger",
	"money_requests": "billing/ledger",
	"money_settings": "billing/ledger",

	"mails": "app/mail",

	"notice_settings": "app/notice",
	"notices":         "app/notice",
	"notice_runs":     "app/notice",
	"notice_hooks":    "app/notice",

	"reviews":   "app/review",
	"seats":     "app/review",
	"decisions": "app/review",

	"goose_db_version": "migrations",
}
