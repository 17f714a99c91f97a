package llm

import "unicode/utf8"

// requestOverhead covers what a provider adds around the two messages: role marks,
// turn marks, the date and the like. Known formats need under 30 tokens.
const requestOverhead = 256

// InputBound is an upper bound of the tokens the model will read for req. Every
// token of a byte-level tokenizer stands for at least one byte, so bytes bound
// tokens. Real counts are three to five times lower; the difference is only
// reserved, never charged.
func InputBound(req Request) int64 {
	bound := wireBytes(req.Instructions) + wireBytes(req.Prompt) + requestOverhead
	for _, file := range req.Files {
		bound += fileBound(file)
	}
	if req.Answer != nil {
		// Twice, because a provider shows the schema to the model in a form of its
		// own, and because without schema mode it also goes into the instructions.
		bound += 2*int64(len(req.Answer.StrictJSON())) + int64(len(askJSON))
	}
	return bound
}

// wireBytes is the length of text as it is sent: JSON replaces each broken byte by
// U+FFFD, which has three.
func wireBytes(text string) int64 {
	var n int64
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			n += 3
		} else {
			n += int64(size)
		}
		i += size
	}
	return n
}

// estimate guesses the tokens of a text when nobody counted them. Most languages
// and formats lie at three to four bytes per token; three errs to the dear side.
func estimate(text string) int64 {
	return (int64(len(text)) + 2) / 3
}

// estimateInput guesses the input tokens of a request, never above its bound.
func estimateInput(req Request) int64 {
	n := estimate(req.Instructions) + estimate(req.Prompt) + 8
	for _, file := range req.Files {
		n += estimateFile(file)
	}
	if req.Answer != nil {
		n += estimate(string(req.Answer.StrictJSON()))
	}
	return min(n, InputBound(req))
}

// estimateFile guesses what a file is billed as: an image of about a million pixels, a
// page of a document for each ten kilobytes.
func estimateFile(f File) int64 {
	switch f.kind() {
	case fileImage:
		return 1_600
	case filePDF:
		return 2_000 * (1 + int64(len(f.Content))/10_000)
	case fileText, fileUnknown:
	}
	return estimate(string(f.Content))
}
