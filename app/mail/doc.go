// Package mail composes mails and sends them, at least once and under one Message-ID.
//
// Every mail is a row of the outbox first. Whoever has a reason for one queues it in the
// transaction that makes the reason true, so there is never a review without its mail
// or a mail about nothing. The row holds data; text, HTML and links are made when the
// mail is sent, so the database never holds a link or a code that works.
//
// What always holds:
//
//   - The Message-ID is fixed with the row. A worker that dies between the server's
//     "taken" and its own record leaves the row "sending"; it is sent again, and the
//     receiver's mail program sees one mail.
//   - An attempt is claimed and ended by guarded updates; the attempt's number is the
//     fence. No transaction is open while a mail server is talked to.
//   - Whatever comes from people, data or models is one plain line in a header and
//     escaped text in a body. It can begin no header, add no recipient and become no
//     link of ours.
//   - A mail that names no workspace is the system's own, and no workspace sees it.
//
// Reading order: message.go, outbox.go, deliver.go, sendstep.go; compose.go with
// request.go, code.go, step.go and templates; sender.go, smtp.go; read.go, store.go.
package mail
