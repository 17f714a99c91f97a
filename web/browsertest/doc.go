// Package browsertest opens pages in a headless Chromium for tests and says
// what is wrong with them: console errors, breaches of the content security
// policy, what axe finds, and content that makes a page scroll sideways.
//
// A test takes the [Browser] and opens a [Page] per width and theme. Every
// step has a time limit of its own, so a browser that hangs fails the test
// instead of stopping it. Without a Chromium tests are skipped with a message,
// unless TOLLGATE_NO_SKIP is 1, which the checks of every change set.
//
// For tests only; nothing of the product imports it.
package browsertest
