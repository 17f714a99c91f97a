// Package trigger is what starts runs. Each way of starting gives its start a key of
// its own, so that the same start that arrives twice, by a double click, a sent-again
// form or a redelivery, is one run.
package trigger
