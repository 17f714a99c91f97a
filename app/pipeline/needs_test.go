package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a pipeline needs is found wherever it sits, and told once.
func TestNeedsOfTemplates(t *testing.T) {
	t.Parallel()
	for slug, want := range map[string]Needs{
		"customer-email":         {People: []Person{{Everyone: true}}, Mail: true},
		"claims-triage":          {People: []Person{{Email: "compliance@nordlicht.example"}, {Everyone: true}, {Email: "claims-lead@nordlicht.example"}}, Mail: true},
		"content-approval":       {People: []Person{{Email: "chief-editor@nordlicht.example"}, {Email: "{{ input.editor }}"}, {Everyone: true}, {Email: "legal@nordlicht.example"}}, Mail: true},
		"payment-reconciliation": {People: []Person{{Everyone: true}, {Email: "receivables@nordlicht.example"}}, Mail: true},
		"code-change": {People: []Person{{Email: "tech-lead@nordlicht.example"}, {Everyone: true}}, Mail: true,
			Events: []ExpectedEvent{{"checks finished", "{{ input.number }}", "Wait for the checks"}}},
	} {
		template, ok := TemplateBySlug(slug)
		require.True(t, ok)
		require.Equal(t, want, template.Document.Needs(), slug)
	}
	calls := Document{Steps: []Step{{ID: "c", Name: "C", Kind: KindHTTP, With: &HTTP{
		Method: "POST", Auth: &Auth{Secret: "erp"}, Headers: []Header{{Name: "X", Secret: "erp"}, {Name: "Y", Secret: "audit"}}, Ask: []Person{{Role: "owner"}},
	}}}}
	require.Equal(t, Needs{People: []Person{{Role: "owner"}}, Secrets: []string{"audit", "erp"}}, calls.Needs())
}
