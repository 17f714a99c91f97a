// Package fakellm is a model server that nobody has to pay: an http.Handler that speaks
// the formats of OpenAI's chat completions, Anthropic's messages and Google's Gemini,
// streamed and whole, and can be told to misbehave in every way that real servers do.
//
// The idea: code under test uses the real client library against the real wire
// format, and only the far end is pretended. The server is as strict as the real
// ones about requests, so that a request it takes is likely to be taken there.
//
// Invariants: the same seed and the same requests give the same answers, whatever
// the order of arrival; every request is recorded, also a refused one, as far as Keep
// allows; Close frees every hanging request. With a Limit, what is taken within any
// window is never above it by more than the bucket that was full.
//
// Besides tests only cmd/tollgate may import it, for load runs and for the local mode's
// practice in breaking things. Reading order: turn.go, server.go, request.go, one of
// openai.go, anthropic.go and gemini.go, reply.go, limit.go, schema.go, value.go.
package fakellm
