// Package fakeerp is another company's system as one meets it: it takes orders, pays no
// heed to idempotency keys, so that what is posted twice is there twice, and breaks on
// order after it has taken one.
//
// Test-only: no production package may import it.
package fakeerp

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Trouble is what happens to the answer of an order that was taken.
type Trouble int

// The troubles.
const (
	None  Trouble = iota
	Cut           // the connection is cut
	Fails         // it answers 500
	Hangs         // it answers never
	Half          // the answer breaks off in its middle
)

// Order is one that was taken.
type Order struct {
	Ref string `json:"ref"`
	Key string `json:"-"` // the idempotency key it came with
	No  int    `json:"no"`
}

// Server is the system. Its zero value works.
type Server struct {
	mu       sync.Mutex
	orders   []Order
	lookUps  int
	troubles []Trouble  // of the orders to come; none when they are used up
	Taken    chan Order // told of each order, where it is set
}

// Start runs a system until the test's end, and gives its address without a slash.
func Start(t testing.TB, troubles ...Trouble) (*Server, string) {
	t.Helper()
	s := &Server{troubles: troubles, Taken: make(chan Order, 100)}
	listening := httptest.NewServer(s)
	t.Cleanup(listening.CloseClientConnections)
	t.Cleanup(listening.Close)
	return s, listening.URL
}

// Trouble says what happens to the orders to come, one after the other.
func (s *Server) Trouble(troubles ...Trouble) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.troubles = troubles
}

// Orders are those that were taken so far, and how often was looked up.
func (s *Server) Orders() ([]Order, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Order(nil), s.orders...), s.lookUps
}

// ServeHTTP takes an order by POST /orders with a JSON body, and finds one by
// GET /orders/{ref}.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.find(w, r.URL.Path[len("/orders/"):])
		return
	}
	order, trouble, ok := s.take(r)
	if !ok {
		http.Error(w, "no order", http.StatusUnprocessableEntity)
		return
	}
	if s.Taken != nil {
		s.Taken <- order
	}
	switch trouble {
	case Cut:
		panic(http.ErrAbortHandler)
	case Hangs:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case Fails:
		http.Error(w, "out of order", http.StatusInternalServerError)
		return
	case Half:
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"ref": `)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case None:
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(order)
}

func (s *Server) take(r *http.Request) (Order, Trouble, bool) {
	var order Order
	if json.NewDecoder(r.Body).Decode(&order) != nil || order.Ref == "" {
		return order, None, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	order.No, order.Key = len(s.orders)+1, r.Header.Get("Idempotency-Key")
	s.orders = append(s.orders, order)
	trouble := None
	if len(s.troubles) > 0 {
		trouble, s.troubles = s.troubles[0], s.troubles[1:]
	}
	return order, trouble, true
}

func (s *Server) find(w http.ResponseWriter, ref string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookUps++
	for _, order := range s.orders {
		if order.Ref == ref {
			_ = json.NewEncoder(w).Encode(order)
			return
		}
	}
	http.Error(w, "no such order", http.StatusNotFound)
}
