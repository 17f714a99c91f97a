// Package llm calls model providers. It turns one Request into one Answer or
// one *Error, and knows nothing of runs, money or tenants.
//
// The idea: a provider is asked exactly once per Call. Waiting, repeating and
// moving on to the next model of a chain belong to the engine, because each
// further try needs money reserved first; so the retries of every client library
// are switched off here.
//
// Invariants:
//
//   - Call returns an Answer or an *Error, never anything else.
//
//   - An Answer is complete: the provider said that it was done, the text is not
//     blank, and Data (when fields were asked for) fits the Schema. Half an
//     object is never handed on.
//
//   - Usage counts every token in exactly one class, and the classes add up to
//     what the provider says in total. Where the provider says nothing, or
//     figures that do not add up, Usage.Estimated is set.
//
//   - InputBound is never below the input tokens of the call.
//
//   - Error.Dispatched is false only where the provider cannot have charged for
//     the call.
//
//   - Text is valid UTF-8 without NUL. Numbers keep every digit.
//
//   - A key goes to the address that it was entered for and to no other; it stands in
//     no answer, no error and no text of Sent.
//
// Reading order: call.go and answer.go (the words), files.go, fault.go (what can go
// wrong), registry.go, conclude.go (from text to Answer; the fields asked for are
// package fields), usage.go and bound.go (tokens), practice.go (the model without a
// key). Then how a provider is asked: endpoint.go (where and with which key),
// exchange.go, transcript.go, classify.go and exchange_fault.go (what all have in
// common), and each provider's own format: what is asked in openai.go, what is answered
// in openai_answer.go, and likewise for anthropic and gemini.
package llm
