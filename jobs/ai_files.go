package jobs

import (
	"context"
	"errors"
	"fmt"

	"tollgate/app/engine"
	"tollgate/app/llm"
	"tollgate/tenants"
)

// errOtherSize tells of a file whose record says another size than it has.
var errOtherSize = errors.New("the file has another size than its record says")

// open gives a request the files that the model should read. A reply says why there is no
// call: the model takes none, or one of them is no file of the run.
func (a AI) open(ctx context.Context, call engine.Call, refs []engine.FileRef, req *llm.Request) *engine.Reply {
	if len(refs) == 0 {
		return nil
	}
	if model, _ := a.Registry.Model(req.Model); !model.TakesFiles {
		return refusal(classInvalidRequest, fmt.Sprintf("The model %s does not take files, so it was not asked. Choose one that reads images and documents, or insert the text.", req.Model))
	}
	name := ""
	err := a.DB.InTx(ctx, call.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		req.Files = nil
		for _, ref := range refs {
			name = ref.Name
			content, err := runFile(ctx, tx, call.Run, ref)
			if err != nil {
				return err
			}
			if int64(len(content)) != ref.Size { // the money was reserved for the size
				return errOtherSize
			}
			req.Files = append(req.Files, llm.File{Name: ref.Name, MediaType: ref.Type, Content: content})
		}
		return nil
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, engine.ErrNoValue):
		return refusal(engine.ClassFormula, fmt.Sprintf("“%s” is no file of this run, so the model was not asked. Pick a file of the input or of an earlier step.", name))
	case errors.Is(err, errOtherSize):
		return refusal(engine.ClassFormula, fmt.Sprintf("“%s” is not as large as its record says, so the model was not asked. Pick the file as the input or an earlier step gave it.", name))
	}
	return putOff(engine.ClassInternal, "The files that the model should read could not be read just now, so it was not asked.", trouble)
}
