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

// Seen is one request as it arrived.
type Seen struct {
	Key           string // the idempotency key
	Authorization string
	Header        http.Header
	Model         string
	MaxTokens     int64
	TokenField    string // the name under which the limit came
	Stream        bool
	IncludeUsage  bool
	Schema        json.RawMessage // nil without a schema
	System        string
	User          string
	Body          []byte
}

// Server is the handler. It is safe for concurrent use.
type Server struct {
	seed   uint64
	closed chan struct{}

	mu    sync.Mutex
	key   string
	queue []Turn
	mix   []Share
	seen  []Seen
	keys  map[string]int
}

// New makes a server whose answers and mixes follow from seed.
func New(seed uint64) *Server {
	return &Server{seed: seed, closed: make(chan struct{}), keys: map[string]int{}}
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
	if r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" {
		writeError(w, http.StatusNotFound, "", "invalid_request_error", "Unknown request URL: "+r.Method+" "+r.URL.Path)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return // the caller left
	}
	ask, problem := readAsk(body)
	turn := s.record(r, ask, body)
	id := fmt.Sprintf("req_%016x", s.hash(string(body)))
	w.Header().Set("X-Request-Id", id)
	for name, value := range turn.Header {
		w.Header().Set(name, value)
	}
	switch {
	case !s.mayCall(r):
		writeError(w, http.StatusUnauthorized, "invalid_api_key", "invalid_request_error", "Incorrect API key provided.")
	case problem != "":
		writeError(w, http.StatusBadRequest, "", "invalid_request_error", problem)
	default:
		s.perform(w, r, ask, turn)
	}
}

// record notes the request and chooses what it meets.
func (s *Server) record(r *http.Request, ask ask, body []byte) Turn {
	key := r.Header.Get("Idempotency-Key")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[key]++
	s.seen = append(s.seen, ask.seen(r, key, body))
	if len(s.queue) > 0 {
		turn := s.queue[0]
		s.queue = s.queue[1:]
		return turn
	}
	draw := int(s.hash(key, fmt.Sprint(s.keys[key])) % 1000) //nolint:gosec // below 1000
	for _, share := range s.mix {
		if draw -= share.PerMille; draw < 0 {
			return share.Turn
		}
	}
	return Turn{}
}

func (s *Server) mayCall(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key == "" || r.Header.Get("Authorization") == "Bearer "+s.key
}

// perform plays the turn up to the answer.
func (s *Server) perform(w http.ResponseWriter, r *http.Request, ask ask, turn Turn) {
	if turn.OnArrival != nil {
		turn.OnArrival()
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
		writeError(w, turn.Status, turn.Code, turn.Type, turn.Message)
	default:
		reply := s.compose(ask, turn)
		if !ask.Stream || turn.Whole {
			writeJSON(w, http.StatusOK, reply.whole())
			return
		}
		s.stream(w, r, reply)
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

func writeError(w http.ResponseWriter, status int, code, kind, message string) {
	block := map[string]any{"message": message, "type": kind, "param": nil, "code": nil}
	if code != "" {
		block["code"] = code
	}
	writeJSON(w, status, map[string]any{"error": block})
}
