package pipeline

import "slices"

// WithStep is the document with a new step of a kind at a place, prefilled, and the id of
// that step. model is what a step that asks AI begins with; it may be empty.
func (d Document) WithStep(at Place, kind Kind, model string) (Document, string, error) {
	if !kind.Known() {
		return d, "", badEdit("“%s” is not a kind of step. Choose one from the list.", shown(string(kind)))
	}
	own := clone(d)
	s := Step{ID: FreshName(kind.Title(), string(kind), own.ids()), Name: kind.Title(), Kind: kind, With: kind.Prefilled()}
	if ask, ok := s.With.(*AI); ok && model != "" {
		ask.Models = []string{model}
	}
	if err := own.insert(at, s); err != nil {
		return d, "", err
	}
	return own, s.ID, nil
}

// insert puts a step with all inside it at a place.
func (d *Document) insert(at Place, s Step) error {
	list, err := d.listAt(at)
	if err != nil {
		return err
	}
	if depth := d.depthAt(at) + s.Levels() - 1; depth > MaxNesting {
		return badEdit("Steps would sit %d deep inside steps there; at most %d are possible. Move the inner ones into a pipeline of their own.", depth, MaxNesting)
	}
	if s.count()+len(d.ids()) > MaxSteps {
		return badEdit("The pipeline would have more than %d steps. Move some into a pipeline of their own.", MaxSteps)
	}
	*list = slices.Insert(*list, min(max(at.Index, 0), len(*list)), s)
	return nil
}

// count is how many steps s is, with those inside it.
func (s *Step) count() int {
	n := 1
	for _, inner := range s.inside() {
		for i := range *inner.steps {
			n += (*inner.steps)[i].count()
		}
	}
	return n
}

// gone tells that a step is not there, as happens when two people edit.
func gone() error {
	return badEdit("This step is not in the draft any more. Somebody may have removed it; Undo brings it back.")
}

// WithoutStep is the document without a step and all inside it.
func (d Document) WithoutStep(id string) (Document, error) {
	own := clone(d)
	_, at, ok := own.StepAt(id)
	if !ok {
		return d, gone()
	}
	list, err := own.listAt(at)
	if err != nil {
		return d, err
	}
	*list = slices.Delete(*list, at.Index, at.Index+1)
	return own, nil
}

// WithMoved is the document with a step, and all inside it, at another place. The place is
// counted in the document as it was. What reads the step stays as it is; Check tells where
// it now comes too early.
func (d Document) WithMoved(id string, to Place) (Document, error) {
	own := clone(d)
	s, from, ok := own.StepAt(id)
	if !ok {
		return d, gone()
	}
	if own.isInside(to.Parent, id) {
		return d, badEdit("A step cannot be moved into itself. Choose a place outside of it.")
	}
	moved := *s
	list, err := own.listAt(from)
	if err != nil {
		return d, err
	}
	*list = slices.Delete(*list, from.Index, from.Index+1)
	if from.Parent == to.Parent && from.List == to.List && from.Index < to.Index {
		to.Index--
	}
	if err := own.insert(to, moved); err != nil {
		return d, err
	}
	return own, nil
}

// isInside tells whether a step is another one or sits inside it.
func (d *Document) isInside(id, of string) bool {
	for id != "" {
		if id == of {
			return true
		}
		_, at, _ := d.StepAt(id)
		id = at.Parent
	}
	return false
}

// WithNudged is the document with a step one place up or down in its own list.
func (d Document) WithNudged(id string, up bool) (Document, error) {
	_, at, ok := d.StepAt(id)
	if !ok {
		return d, gone()
	}
	list, err := d.listAt(at)
	if err != nil {
		return d, err
	}
	switch {
	case up && at.Index == 0:
		return d, badEdit("This step is the first of its list already. “Move to…” can put it elsewhere.")
	case !up && at.Index == len(*list)-1:
		return d, badEdit("This step is the last of its list already. “Move to…” can put it elsewhere.")
	case up:
		at.Index--
	default:
		at.Index += 2
	}
	return d.WithMoved(id, at)
}

// WithCopy is the document with a copy of a step, and of all inside it, right behind it,
// and the id of the copy. Steps of the copy that read each other read those of the copy.
func (d Document) WithCopy(id string) (Document, string, error) {
	own := clone(d)
	source, at, ok := own.StepAt(id)
	if !ok {
		return d, "", gone()
	}
	again := clone(*source)
	taken := own.ids()
	renamed := map[string]string{}
	again.each(func(s *Step) { renamed[s.ID] = FreshName(s.ID, string(s.Kind), taken) })
	again.each(func(s *Step) {
		s.ID = renamed[s.ID]
		rereadStep(s, renamed)
	})
	again.Name = cut(again.Name+" (copy)", MaxName)
	at.Index++
	if err := own.insert(at, again); err != nil {
		return d, "", err
	}
	return own, again.ID, nil
}

// each goes through s and all steps inside it.
func (s *Step) each(do func(*Step)) {
	do(s)
	for _, inner := range s.inside() {
		for i := range *inner.steps {
			(*inner.steps)[i].each(do)
		}
	}
}

// cut shortens a text to so many characters.
func cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most])
	}
	return text
}

// WithSwitched is the document with a step turned off or on. What is turned off stays in
// the draft and is no part of what is published.
func (d Document) WithSwitched(id string, off bool) (Document, error) {
	own := clone(d)
	s, _, ok := own.StepAt(id)
	if !ok {
		return d, gone()
	}
	s.Off = off
	return own, nil
}

// WithChanged is the document with one step changed in place. Its id and kind stay.
func (d Document) WithChanged(id string, change func(*Step) error) (Document, error) {
	own := clone(d)
	s, _, ok := own.StepAt(id)
	if !ok {
		return d, gone()
	}
	if err := change(s); err != nil {
		return d, err
	}
	return own, nil
}
