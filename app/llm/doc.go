// Package llm calls model providers. It turns one Request into one Answer or
// one *Error, and knows nothing of runs, money or tenants.
//
// The idea: a provider is asked exactly once per Call. Waiting, repeating and
// moving on to the next model of a chain belong to the engine, because each
// further try needs money reserved first; so the retries of every client library
// are switched off here.
//
// Invariants:
//   - Call returns an Answer or an *Error, never anything else.
//   - An Answer is complete: the provider said that it was done, the text is not
//     blank, and Data (when fields were asked for) fits the Schema. Half an
//     object is never handed on.
//   - Usage counts every token in exactly one class, and the classes add up to
//     what the provider says in total. Where the provider says nothing, or
//     figures that do not add up, Usage.Estimated is set.
//   - InputBound is never below the input tokens of the call.
//   - Error.Dispatched is false only where the provider cannot have charged for
//     the call.
//   - Text is valid UTF-8 without NUL. Numbers keep every digit.
//
// Reading order: call.go (the words), fault.go (what can go wrong), registry.go,
// conclude.go (from text to Answer; the fields asked for are package fields),
// usage.go and bound.go (tokens), practice.go (the model without a key), openai.go,
// stream.go and openai_fault.go (the adapter for OpenAI-compatible servers).
package llm
