// Package fakellm is a model server for tests: an http.Handler that speaks the
// OpenAI chat completions format, streamed and whole, and can be told to misbehave
// in every way that real servers do.
//
// The idea: code under test uses the real client library against the real wire
// format, and only the far end is pretended. The server is as strict as the real
// one about requests, so that a request it takes is likely to be taken there.
//
// Invariants: the same seed and the same requests give the same answers, whatever
// the order of arrival; every request is recorded, also a refused one; Close frees
// every hanging request.
//
// Test-only: no production package may import it. Reading order: turn.go,
// server.go, request.go, reply.go, value.go.
package fakellm
