// Package outbound makes every HTTP call to an address that a user chose: HTTP
// steps, webhooks, and model servers with a base URL of the user's own.
//
// The idea: an address is judged when the connection is made, on the IP number
// that is about to be dialled, for every hop of a redirect. Checking the name
// beforehand is useless, because the name may resolve to something else a moment
// later. What looks odd in the URL is refused before, for a clearer message only.
//
// Invariants:
//   - No connection goes to a private, local or reserved address, unless the
//     operator named that very host and port in Config.Allow.
//   - No proxy from the environment is used: it would dial for us, unguarded.
//   - An error's text holds nothing that only the inside of the network knows: no
//     resolved address, no port state of a refused host.
//   - Body and time of an answer are bounded, after decompression.
//   - Nothing a user or a server sends makes this package panic.
//
// Reading order: client.go, address.go (the judgement), guard.go (where it is
// applied), redirect.go, fault.go, mask.go (secrets in what comes back), retryafter.go.
package outbound
