package notice

import (
	"strconv"
	"strings"
)

// causes word the classes of failures that people meet.
var causes = map[string]string{
	"formula": "a formula could not be worked out", "nobody_to_ask": "there was nobody to ask", "bad_review": "a question could not be asked as it came out",
	"expired": "a deadline passed without an answer", "too_far": "it would have waited for too long", "too_large": "a value was too large",
	"limit": "a loop reached one of its limits", "none_good": "no branch gave a good result", "interrupted": "a call was interrupted",
	"unsure": "nobody can tell whether a call arrived", "no_price": "the price of a model is not known", "too_dear": "a call might cost more than the step allows",
	"no_pipeline": "a pipeline that it runs is not there", "bad_input": "what it hands to another pipeline does not fit", "too_deep": "pipelines start each other too deep",
	"too_many": "there are too many runs", "child_cancelled": "a run that it waited for was cancelled", "internal": "something went wrong on our side",
	"rate_limited": "the other side was asked too often", "overloaded": "the other side had no room", "server": "the other side had a failure",
	"timeout": "the other side did not answer in time", "connection": "the other side could not be reached", "context_too_long": "the model was given more than it can read",
	"refused": "the model or the other side refused", "invalid_request": "the request was not taken", "auth": "the key or password was not taken",
	"spend_limit": "the provider’s own spend limit is reached", "malformed": "the answer could not be read", "empty": "the answer was empty",
	"truncated": "the answer was cut off",
}

// causeWords say why, in a few words. A name that a pipeline gave is quoted.
func causeWords(class string) string {
	if words, ok := causes[class]; ok {
		return words
	}
	if class == "" {
		return ""
	}
	return "“" + strings.ReplaceAll(class, "_", " ") + "”"
}

// Words say what a notice is about: "14 runs failed at “Draft the reply”: the other side did
// not answer in time". step is the name of the step, empty where it is about none.
func (n Notice) Words(step string) string { return n.words(n.Runs, step, false) }

// words say it of so many runs, and in the past where it is over.
func (n Notice) words(runs int, step string, over bool) string {
	subject := count(runs) + " runs"
	verb := func(one, many, past string) string {
		switch {
		case over:
			return " " + past
		case runs == 1:
			return " " + one
		}
		return " " + many
	}
	if runs == 1 {
		subject = "1 run"
	}
	at := ""
	if step != "" {
		at = " at “" + step + "”"
	}
	why := causeWords(n.Class)
	switch n.Kind {
	case Failed:
		if why == "" {
			return subject + " failed" + at
		}
		return subject + " failed" + at + ": " + why
	case Exception:
		return subject + verb("waits", "wait", "waited") + " for somebody to decide" + at + ", because " + why
	case Capped:
		return subject + verb("waits", "wait", "waited") + " for the AI spend cap"
	}
	return subject + verb("stands still", "stand still", "stood still")
}

// count writes a number with separators: "1,004".
func count(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// advice says what can be done, one sentence for each kind.
var advice = map[Kind]string{
	Failed:    "Once the cause is gone, the failed step can be tried again for all of them at once.",
	Exception: "The people who were asked have a mail; others may answer on the run’s page.",
	Capped:    "They go on by themselves once the cap leaves room.",
	Stuck:     "The watchdog goes on trying. If it lasts, tell whoever runs this installation.",
}

// kindWords offer the kinds to be told of.
var kindWords = map[Kind]string{
	Failed: "Runs that fail", Stuck: "Runs that stand still", Exception: "Runs that wait for somebody to decide about a failure", Capped: "Runs that wait for the AI spend cap",
}

// Words offer a kind to be told of.
func (k Kind) Words() string { return kindWords[k] }
