package expr

import "context"

type Scope map[string]any
type Ref struct {
	Root    string
	Path    []string
	Guarded bool
}
type Formula struct{}

func Compile(src string) (*Formula, error)                         { return &Formula{}, nil }
func (f *Formula) Eval(ctx context.Context, s Scope) (any, error)  { return nil, nil }
func (f *Formula) Bool(ctx context.Context, s Scope) (bool, error) { return false, nil }
func (f *Formula) Refs() []Ref                                     { return nil }
func (f *Formula) Source() string                                  { return "" }

type Text struct{}

func ParseText(src string) (*Text, error)                           { return &Text{}, nil }
func (t *Text) Render(ctx context.Context, s Scope) (string, error) { return "", nil }
func (t *Text) Refs() []Ref                                         { return nil }
func (t *Text) Source() string                                      { return "" }
func DecodeJSON(data []byte) (any, error)                           { return nil, nil }
func EncodeJSON(v any) ([]byte, error)                              { return nil, nil }
func Preview(data []byte, limit int) string                         { return "" }
func Plain(s string) string                                         { return s }
func Words(v any) (string, error)                                   { return "", nil }
