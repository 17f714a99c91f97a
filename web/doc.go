// Package web is the pages: URLs, sign-in, sessions, forms, and what people are told
// when something goes wrong. It asks the other rooms and writes no SQL.
//
// # How a request goes
//
// routes.go is the whole map: each URL with its name and with who may use it. guard.go
// lists, in order, what a request passes before its handler: headers, limits, the
// check that a change comes from our own page, the session, and whether this person
// may do this here. A handler gets a visit (the request with the person, her membership
// and her clock), does its work in one transaction with visit.inTx, and renders after
// the commit. What goes wrong is returned as an error; problem.go is the one table that
// says which status and which words it becomes.
//
// # Adding a page
//
// Write the handler as a method func(v *visit) error in the file of its resource, what
// it draws in the .templ file beside it, and one line in routes.go. The tests that go
// through the route table then cover it: another tenant's ids are 404, the signed-out
// are sent to sign in, changes from other sites are refused.
//
// # The builder
//
// build.go reads a draft for its pages; build_outline.go is the outline and the strip above
// it. A step's form is described once, by a method for each kind (build_kinds.go and its
// like): each field is read into the setting it is given, where something was sent, and
// drawn with what is stored or was typed (build_form.go). A form is saved to the step as it
// was drawn, told by a digest; where somebody else saved it meanwhile, both are shown.
//
// # Invariants
//
//   - GET and HEAD change nothing.
//   - Nothing is rendered inside a transaction, and nothing is sent before the whole
//     page was rendered.
//   - The text of an error never reaches a page; its reference number does.
//   - No address with a token, no cookie and no form value is ever logged: the log has
//     the route's pattern.
//   - Every page works without a script, and carries the strictest content policy.
//
// Reading order: server.go, routes.go, route.go, guard.go, person.go, render.go,
// problem.go; then any resource, such as signin.go.
package web
