package fakellm

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// Limit is what the server takes from one API key for one model within Per: a bucket
// that is full at first and fills evenly. A figure of 0 is no limit.
type Limit struct {
	Requests, Tokens int64
	Per              time.Duration // 0 means a minute
}

// Metered tells what a limited server took and refused so far.
type Metered struct {
	Taken, Refused int64 // requests
	Tokens         int64 // of those taken
}

// Limit makes the server keep a limit and answer 429 beyond it.
func (s *Server) Limit(limit Limit) {
	if limit.Per <= 0 {
		limit.Per = time.Minute
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.buckets, s.metered = limit, map[string]*bucket{}, Metered{}
}

// Metered returns the counts since Limit.
func (s *Server) Metered() Metered {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.metered
}

// bucket is what one key has left for one model.
type bucket struct {
	requests, tokens float64
	at               time.Time
}

// admit takes a request of so many tokens out of its bucket, and tells of the limit in
// headers as OpenAI and Anthropic do. It reports false after a 429 is due.
func (s *Server) admit(w http.ResponseWriter, f format, key, model string, tokens int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit.Per == 0 {
		return true
	}
	b := s.bucket(key + "\x00" + model)
	short := 0.0 // windows until there is room
	if s.limit.Requests > 0 && b.requests < 1 {
		short = max(short, (1-b.requests)/float64(s.limit.Requests))
	}
	// A request above the whole limit passes from a full bucket, or it never could.
	if need := min(float64(tokens), float64(s.limit.Tokens)); s.limit.Tokens > 0 && b.tokens < need {
		short = max(short, (need-b.tokens)/float64(s.limit.Tokens))
	}
	if short == 0 {
		b.requests--
		b.tokens -= float64(tokens)
		s.metered.Taken++
		s.metered.Tokens += tokens
	} else {
		s.metered.Refused++
		seconds := short * s.limit.Per.Seconds()
		w.Header().Set("Retry-After", strconv.FormatFloat(math.Ceil(seconds*1000)/1000, 'f', -1, 64))
	}
	s.tell(w, f, b)
	return short == 0
}

// bucket finds a bucket and fills it up to now.
func (s *Server) bucket(name string) *bucket {
	now := time.Now()
	b := s.buckets[name]
	if b == nil {
		b = &bucket{requests: float64(s.limit.Requests), tokens: float64(s.limit.Tokens), at: now}
		s.buckets[name] = b
	}
	windows := now.Sub(b.at).Seconds() / s.limit.Per.Seconds()
	b.requests = min(b.requests+windows*float64(s.limit.Requests), float64(s.limit.Requests))
	b.tokens = min(b.tokens+windows*float64(s.limit.Tokens), float64(s.limit.Tokens))
	b.at = now
	return b
}

// tell writes the headers of the format; Gemini has none.
func (s *Server) tell(w http.ResponseWriter, f format, b *bucket) {
	for _, l := range []struct {
		name  string
		limit int64
		left  float64
	}{{"Requests", s.limit.Requests, b.requests}, {"Tokens", s.limit.Tokens, b.tokens}} {
		if l.limit == 0 {
			continue
		}
		left := max(int64(l.left), 0)
		full := time.Duration((1 - max(l.left, 0)/float64(l.limit)) * float64(s.limit.Per)).Round(time.Millisecond)
		switch f.name() {
		case "openai":
			w.Header().Set("X-Ratelimit-Limit-"+l.name, strconv.FormatInt(l.limit, 10))
			w.Header().Set("X-Ratelimit-Remaining-"+l.name, strconv.FormatInt(left, 10))
			w.Header().Set("X-Ratelimit-Reset-"+l.name, full.String())
		case "anthropic":
			w.Header().Set("Anthropic-Ratelimit-"+l.name+"-Limit", strconv.FormatInt(l.limit, 10))
			w.Header().Set("Anthropic-Ratelimit-"+l.name+"-Remaining", strconv.FormatInt(left, 10))
			w.Header().Set("Anthropic-Ratelimit-"+l.name+"-Reset", time.Now().Add(full).UTC().Format(time.RFC3339Nano))
		}
	}
}
