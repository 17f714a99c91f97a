package pipeline

// Concurrency bounds how many runs of a pipeline are open at once.
type Concurrency struct {
	Limit  int               `json:"limit"`
	Policy ConcurrencyPolicy `json:"policy,omitempty"` // empty: queue
}

// ConcurrencyPolicy is what happens to a start that finds the limit reached.
type ConcurrencyPolicy string

// The policies of a limit.
const (
	ConcurrencyQueue        ConcurrencyPolicy = "queue"         // the run waits for its turn
	ConcurrencySkip         ConcurrencyPolicy = "skip"          // the run ends at once, and says why
	ConcurrencyCancelOldest ConcurrencyPolicy = "cancel_oldest" // the oldest open run is cancelled for it
)

// maxConcurrency bounds the limit; beyond it the workspace's own quotas count.
const maxConcurrency = 10_000

func (c *checker) concurrency() {
	limit := c.doc.Concurrency
	if limit == nil {
		return
	}
	if limit.Limit < 1 || limit.Limit > maxConcurrency {
		c.blocks(nil, "concurrency.limit", "The most runs at once is %d. Set it to a number from 1 to %d, or leave the limit out.", limit.Limit, maxConcurrency)
	}
	c.oneOf(nil, "concurrency.policy", string(limit.Policy), "", string(ConcurrencyQueue), string(ConcurrencySkip), string(ConcurrencyCancelOldest))
}
