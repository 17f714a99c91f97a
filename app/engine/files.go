package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
)

// FileRef names a stored file.
type FileRef struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Digest string `json:"digest"`
	// Size is what the file's record says, in bytes; 0 where it says nothing. Who can
	// write a value can write any size, so whoever counts on it compares it with the bytes.
	Size int64 `json:"size,omitempty"`
}

// files works out the files that formulas give. place is for people: "an attachment".
func (d *decider) files(place string, formulas []*expr.Formula) ([]FileRef, error) {
	var all []FileRef
	for _, formula := range formulas {
		value, err := formula.Eval(context.Background(), d.vars)
		if err != nil {
			return nil, fmt.Errorf("In %s: %w", place, err)
		}
		files, err := filesIn(value)
		if err != nil {
			return nil, fmt.Errorf("In %s: it is not a file. Pick a file, or a list of files.", place)
		}
		all = append(all, files...)
	}
	return all, nil
}

// fitFiles refuses files that are too many or too large for one question to a model.
func fitFiles(files []FileRef) error {
	if len(files) > pipeline.MaxAIFiles {
		return fmt.Errorf("The step gives the AI %d files to read; at most %d can be sent at once. Give it fewer.", len(files), pipeline.MaxAIFiles)
	}
	left := int64(pipeline.MaxAIFileBytes)
	for _, file := range files {
		if file.Size <= 0 {
			return fmt.Errorf("The file “%s” is empty or does not say how large it is, so the AI cannot be given it. Pick a file of the input or of an earlier step.", file.Name)
		}
		if file.Size > left {
			return fmt.Errorf("The files that the AI should read have more than %d MB together. Give it fewer or smaller ones.", pipeline.MaxAIFileBytes>>20)
		}
		left -= file.Size
	}
	return nil
}

// filesIn finds the files that a value is or lists; an empty value has none.
func filesIn(value any) ([]FileRef, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case []any:
		var all []FileRef
		for _, one := range v {
			files, err := filesIn(one)
			if err != nil {
				return nil, err
			}
			all = append(all, files...)
		}
		return all, nil
	case map[string]any:
		encoded, err := expr.EncodeJSON(map[string]any{"name": v["name"], "type": v["type"], "digest": v["digest"]})
		if err != nil {
			return nil, err
		}
		var ref FileRef
		if json.Unmarshal(encoded, &ref) != nil {
			break
		}
		if _, err := ParseDigest(ref.Digest); err == nil && ref.Name != "" {
			ref.Size = sizeIn(v["size"])
			return []FileRef{ref}, nil
		}
	}
	return nil, fmt.Errorf("it is not a file")
}

// sizeIn reads the size in a file's record; 0 for what is none.
func sizeIn(value any) int64 {
	encoded, err := expr.EncodeJSON(value)
	if err != nil {
		return 0
	}
	var size int64
	if json.Unmarshal(encoded, &size) != nil {
		return 0
	}
	return size
}
