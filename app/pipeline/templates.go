package pipeline

import (
	"embed"
	"encoding/json"
	"fmt"
	"sync"
)

//go:embed templates/*.json
var templateFiles embed.FS

// Template is a pipeline to start from, with a sample to try it with.
type Template struct {
	Slug     string // its name in addresses
	Area     string // of a company's work, as it stands above a group of templates
	Title    string
	Summary  string // two or three sentences
	Settings []Setting
	// SampleCost is about what a run on the sample costs, in pretend micro-USD.
	SampleCost int64
	Document   Document
	Program    *Program
	// SampleFiles are the files of the sample by name.
	SampleFiles map[string][]byte
}

// slugs is the order in which templates are offered; those of an area stand together.
var slugs = []string{
	"customer-email", "second-opinion",
	"invoice-check", "invoice-list", "payment-reconciliation",
	"claims-triage", "kyc-check",
	"contract-summary", "research-brief",
	"improve-text", "content-approval", "lead-enrichment",
	"incident-report", "code-change",
}

// Templates lists the templates in the order in which they are offered. They are
// shared and must not be changed.
func Templates() []Template { return allTemplates() }

// TemplateBySlug finds a template; ok is false where there is none.
func TemplateBySlug(slug string) (t Template, ok bool) {
	for _, t := range allTemplates() {
		if t.Slug == slug {
			return t, true
		}
	}
	return Template{}, false
}

var allTemplates = sync.OnceValue(func() []Template {
	var out []Template
	for _, slug := range slugs {
		t, err := readTemplate(slug)
		if err != nil {
			panic(fmt.Sprintf("pipeline: the template %s is broken: %v", slug, err))
		}
		out = append(out, t)
	}
	return out
})

func readTemplate(slug string) (Template, error) {
	data, err := templateFiles.ReadFile("templates/" + slug + ".json")
	if err != nil {
		return Template{}, err
	}
	var file struct {
		Area, Title, Summary string
		Settings             []Setting
		Cost                 int64
		Document             json.RawMessage
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return Template{}, err
	}
	t := Template{Slug: slug, Area: file.Area, Title: file.Title, Summary: file.Summary, Settings: file.Settings, SampleCost: file.Cost}
	if t.Document, err = Parse(file.Document); err != nil {
		return Template{}, err
	}
	if t.Program, err = Compile(t.Document); err != nil {
		return Template{}, err
	}
	t.SampleFiles, err = sampleFiles(t.Document)
	return t, err
}

// sampleFiles picks the files out of a document's sample.
func sampleFiles(d Document) (map[string][]byte, error) {
	_, files, err := d.SampleInput()
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, f := range files {
		out[f.Name] = f.Data
	}
	return out, nil
}
