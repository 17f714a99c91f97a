package fakellm

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Server is the handler. It is safe for concurrent use.
type Server struct {
	seed   uint64
	closed chan struct{}

	mu       sync.Mutex
	key      string
	queue    []Turn
	mix      []Share
	choose   func(ask Seen, times int) (Turn, bool)
	seen     []Seen
	keep     int
	keys     map[string]int
	shortest time.Duration
	longest  time.Duration
	limit    Limit
	buckets  map[string]*bucket
	metered  Metered
}

// New makes a server whose answers and mixes follow from seed.
func New(seed uint64) *Server {
	return &Server{seed: seed, closed: make(chan struct{}), keys: map[string]int{}, keep: -1}
}

// Close frees every hanging request. Call it before closing the test server that
// waits for them.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
}

// RequireKey makes the server refuse every other API key.
func (s *Server) RequireKey(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = key
}

// Latency makes good answers take between shortest and longest, spread by the request.
func (s *Server) Latency(shortest, longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shortest, s.longest = shortest, max(shortest, longest)
}

// Keep bounds how many requests Seen remembers, the latest. Without it all are kept,
// which a long run under load has no room for.
func (s *Server) Keep(requests int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep = max(requests, 0)
}

// Play puts turns in front of the next requests, in order of arrival.
func (s *Server) Play(turns ...Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, turns...)
}

// Mix sets what requests meet when no turn is queued. Which share a request gets
// follows from the seed, its key and how often the key was seen, so that it does
// not depend on the order of arrival. What is left of 1000 is answered well.
func (s *Server) Mix(shares ...Share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mix = slices.Clone(shares)
}

// Choose decides what a request meets by what it asks; times is how often its key was
// seen, this time included. Where choose says false, the queue and the mix decide.
func (s *Server) Choose(choose func(ask Seen, times int) (Turn, bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.choose = choose
}

// Seen lists all requests so far in order of arrival.
func (s *Server) Seen() []Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// Times tells how often an idempotency key was seen.
func (s *Server) Times(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[key]
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.URL.Path == "/v1/models" {
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{}})
		return
	}
	f := formatOf(r)
	if f == nil {
		openAI{}.fail(w, Turn{Status: http.StatusNotFound, Type: "invalid_request_error", Message: "Unknown request URL: " + r.Method + " " + r.URL.Path})
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return // the caller left
	}
	ask, problem := f.read(r, body)
	ask.Format, ask.Key, ask.Body = f.name(), r.Header.Get("Idempotency-Key"), body
	ask.Header, ask.Authorization, ask.APIKey = r.Header.Clone(), r.Header.Get("Authorization"), apiKey(r.Header)
	turn := s.record(ask)
	w.Header().Set(f.idHeader(), fmt.Sprintf("req_%016x", s.hash(string(body))))
	for name, value := range turn.Header {
		w.Header().Set(name, value)
	}
	switch {
	case !s.mayCall(ask.APIKey):
		f.fail(w, Turn{Status: http.StatusUnauthorized, Code: "invalid_api_key", Message: "Incorrect API key provided."})
	case problem != "":
		f.fail(w, Turn{Status: http.StatusBadRequest, Message: problem})
	default:
		s.perform(w, r, f, ask, turn)
	}
}

// record notes the request and chooses what it meets.
func (s *Server) record(ask Seen) Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[ask.Key]++
	s.seen = append(s.seen, ask)
	if s.keep >= 0 && len(s.seen) > s.keep {
		s.seen = slices.Clone(s.seen[len(s.seen)-s.keep:])
	}
	if s.choose != nil {
		if turn, ok := s.choose(ask, s.keys[ask.Key]); ok {
			return turn
		}
	}
	if len(s.queue) > 0 {
		turn := s.queue[0]
		s.queue = s.queue[1:]
		return turn
	}
	draw := int(s.hash(ask.Key, fmt.Sprint(s.keys[ask.Key])) % 1000) //nolint:gosec // below 1000
	for _, share := range s.mix {
		if draw -= share.PerMille; draw < 0 {
			return share.Turn
		}
	}
	return Turn{Delay: s.latency(ask)}
}

// latency spreads the time of an answer by the request. The lock is held.
func (s *Server) latency(ask Seen) time.Duration {
	if s.longest == 0 {
		return 0
	}
	spread := uint64(s.longest - s.shortest)                                //nolint:gosec // not negative
	return s.shortest + time.Duration(s.hash(ask.Key, ask.User)%(spread+1)) //nolint:gosec // below spread
}

func (s *Server) mayCall(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key == "" || s.key == key
}

// perform plays the turn up to the answer.
func (s *Server) perform(w http.ResponseWriter, r *http.Request, f format, ask Seen, turn Turn) {
	if turn.OnArrival != nil {
		turn.OnArrival()
	}
	reply := s.compose(f, ask, turn)
	if !s.admit(w, f, ask.APIKey, ask.Model, reply.figures.total()) {
		f.fail(w, Turn{Status: http.StatusTooManyRequests, Code: "rate_limit_exceeded", Message: "Rate limit reached."})
		return
	}
	if turn.Delay > 0 && !s.wait(r, time.After(turn.Delay)) {
		return
	}
	switch {
	case turn.Hang:
		s.wait(r, nil)
	case turn.Drop:
		panic(http.ErrAbortHandler) // closes the connection, and logs nothing
	case turn.Body != "":
		w.Header().Set("Content-Type", turn.ContentType)
		w.WriteHeader(max(turn.Status, http.StatusOK))
		_, _ = io.WriteString(w, turn.Body)
	case turn.Status >= 300:
		f.fail(w, turn)
	case !ask.Stream || turn.Whole:
		writeJSON(w, http.StatusOK, f.whole(reply))
	default:
		s.stream(w, r, f, reply)
	}
}

// wait blocks until the signal; false when the caller left or the server closed.
func (s *Server) wait(r *http.Request, signal <-chan time.Time) bool {
	select {
	case <-signal:
		return true
	case <-r.Context().Done():
	case <-s.closed:
	}
	return false
}

func (s *Server) hash(parts ...string) uint64 {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%d", s.seed)
	for _, part := range parts {
		_, _ = fmt.Fprintf(hash, "\x00%s", part)
	}
	return hash.Sum64()
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
