// Package static holds what a browser loads beside a page: one stylesheet, the
// icon sprite, htmx with its stream extension, and a small script of our own.
//
// # How it works
//
// Everything is embedded. At start each asset gets an address with a digest of
// its content in it ("/static/app.1f2e3d4c5b6a.css"), so it can be cached for
// ever and a new build is seen at once. Pages never write such an address by
// hand: they ask [URL]. [Handler] serves exactly these addresses, packed with
// gzip where the browser takes it, and nothing else.
//
// # The stylesheet
//
// The files in css/ are joined in the order of their names into app.css when
// the program starts. There is no build step and nothing generated to keep
// fresh. Cascade layers are declared in the first file; each file fills one.
//
// # Invariants
//
//   - No asset comes from another host, and none needs eval or inline code: the
//     strictest content security policy holds.
//   - Files under vendor/ are byte for byte what their authors published; a test
//     holds their SHA-256. Their licences lie beside them.
//
// Reading order: static.go, handler.go, then css/ from 00 on.
package static
