package engine

import "tollgate/app/pipeline"

// following is what follows a try of an AI step that gave nothing to go on with.
type following int

const (
	giveUp    following = iota // the step fails
	backOff                    // the same model after a pause
	nextModel                  // the next of the chain, at once
	askAnew                    // the same model at once, told what was wrong with its answer
	askLonger                  // the same model at once, with more room for its answer
	askPeople                  // somebody gives the answer in place of the models
)

// standing of a chain: all that what follows depends on, beside the class.
type chainFacts struct {
	tryAgain bool // the step allows the same model another try after a pause
	more     bool // another model comes after this one
	anew     bool // this model may be asked anew
	longer   bool // it may be allowed a longer answer
	refusal  pipeline.RefusalAction
	missing  pipeline.MissingAction
}

// follows is the whole rule of documents that follow rules number 5 or later. A class
// that stands nowhere here is a defect of ours or of the data, which no model mends.
func follows(class string, f chainFacts) following {
	switch class {
	case "rate_limited", "overloaded", "server", "timeout", "connection":
		if f.tryAgain {
			return backOff
		}
		return f.onward(giveUp)
	case "context_too_long", "invalid_request", "auth", "spend_limit", ClassNoPrice, ClassTooDear:
		return f.onward(giveUp)
	case "malformed", "empty":
		if f.anew {
			return askAnew
		}
		if f.missing == pipeline.MissingAsk {
			return f.onward(askPeople)
		}
		return f.onward(giveUp)
	case "truncated":
		if f.longer {
			return askLonger
		}
		return f.onward(giveUp)
	case "refused":
		switch f.refusal {
		case pipeline.RefusalNext:
			return f.onward(giveUp)
		case pipeline.RefusalAsk:
			return askPeople
		}
	}
	return giveUp
}

// onward is the next model, or what is done behind the last.
func (f chainFacts) onward(last following) following {
	if f.more {
		return nextModel
	}
	return last
}
