package web

import (
	"bytes"
	"context"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// everyField has a field of each type.
func everyField(name string) pipeline.Document {
	document := askingDocument(name)
	document.RunName = "Run"
	document.Input = []pipeline.Field{
		{Name: "title", Label: "Title", Type: pipeline.TypeText, Required: true},
		{Name: "text", Label: "Long text", Type: pipeline.TypeText, Long: true},
		{Name: "order", Label: "Order number", Type: pipeline.TypeNumber},
		{Name: "sum", Label: "Sum", Type: pipeline.TypeMoney},
		{Name: "day", Label: "Day", Type: pipeline.TypeDate},
		{Name: "at", Label: "Moment", Type: pipeline.TypeDateTime},
		{Name: "urgent", Label: "Urgent", Type: pipeline.TypeYesNo},
		{Name: "kind", Label: "Kind", Type: pipeline.TypeChoice, Choices: []pipeline.Choice{{Value: "a", Label: "First"}, {Value: "b", Label: "Second"}}},
		{Name: "file", Label: "Attachment", Type: pipeline.TypeFile},
		{Name: "tags", Label: "Tags", Type: pipeline.TypeList, Of: &pipeline.Field{Type: pipeline.TypeText}},
		{Name: "who", Label: "Customer", Type: pipeline.TypeRecord, Fields: []pipeline.Field{{Name: "name", Label: "Name", Type: pipeline.TypeText, Required: true}}},
	}
	document.Steps[0].With.(*pipeline.Review).Question = "Shall we?"
	return document
}

// sent is a form with files, as a browser sends it.
type sent struct {
	values url.Values
	files  map[string][]byte // by field; the name of the file is name.json unless said
	name   string
}

func (b *browser) upload(path string, form sent) *page {
	b.s.t.Helper()
	var body bytes.Buffer
	writer := multipart.NewWriter(&body)
	for name, values := range form.values {
		for _, value := range values {
			require.NoError(b.s.t, writer.WriteField(name, value))
		}
	}
	for field, data := range form.files {
		name := form.name
		if name == "" {
			name = "name.json"
		}
		part, err := writer.CreateFormFile(field, name)
		require.NoError(b.s.t, err)
		_, err = part.Write(data)
		require.NoError(b.s.t, err)
	}
	require.NoError(b.s.t, writer.Close())
	r := b.request(http.MethodPost, path, &body)
	r.Header.Set("Content-Type", writer.FormDataContentType())
	return b.do(r)
}

func filled(pairs ...string) url.Values {
	values := url.Values{formKeyName: {"k"}, "title": {"A title"}, "who.name": {"Ms Oduya"}}
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return values
}

func (s *site) runs() []engine.Line {
	s.t.Helper()
	var lines []engine.Line
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		page, err := engine.ListRuns(ctx, tx, engine.Filter{}, engine.RunID{}, 50)
		lines = page.Lines
		return err
	})
	return lines
}

func (s *site) inputOf(run engine.Run) string {
	s.t.Helper()
	var content engine.Content
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		content, err = engine.ValueOf(ctx, tx, run.ID, run.Input)
		return err
	})
	return string(content.Bytes)
}

// What is typed is what the run gets, digit for digit, and what its page shows.
func TestCaseS33StartKeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.publish(s.home, everyField("All fields"))
	b := s.in(tenants.Builder)
	form := sent{values: filled(
		"order", "9007199254740993", "sum", "0.10", "sum.currency", "EUR", "day", "2026-11-30", "at", "2026-11-30T09:00", "at.zone", "Europe/Berlin",
		"urgent", "true", "kind", "b", "tags", "red\r\ngreen", "text", "two\r\nlines",
	), files: map[string][]byte{"file": []byte(`{"exact": 12345678901234567890.0100}`)}}
	p := b.upload(s.at("pipelines", id.String(), "start"), form).is(http.StatusSeeOther)
	run := s.runs()[0].Run
	require.Equal(t, s.at("runs", run.ID.String()), p.header.Get("Location"))
	input := s.inputOf(run)
	for _, want := range []string{
		`"order":9007199254740993`, `"sum":{"amount":0.10,"currency":"EUR"}`, `"at":"2026-11-30T09:00:00+01:00"`, `"urgent":true`,
		`"tags":["red","green"]`, `"text":"two\nlines"`, `"exact":12345678901234567890.0100`, `"who":{"name":"Ms Oduya"}`,
	} {
		require.Contains(t, input, want)
	}
	page := p.follow().is(http.StatusOK).says("9007199254740993", "€0.10", "Second", "name.json", "Ms Oduya")
	var files []string
	for _, link := range page.all("a", "class", "chosen-file") {
		files = append(files, b.get(attr(link, "href")).is(http.StatusOK).body)
	}
	require.Equal(t, []string{`{"exact": 12345678901234567890.0100}`}, files, "a file comes back byte for byte")
}

// A form that cannot be taken comes back with all that was typed, says what to do at
// each field and above them, and starts nothing.
func TestStartSaysWhatToFix(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	path := s.at("pipelines", s.publish(s.home, everyField("All fields")).String(), "start")
	deep := strings.Repeat("[", 10<<20-1)
	cases := map[string]struct {
		form  sent
		field string
		says  string
	}{
		"left empty":         {sent{values: filled("title", " ")}, "title", "“Title” is empty. Fill it in."},
		"left empty inside":  {sent{values: filled("who.name", "")}, "who.name", "“Name” is empty. Fill it in."},
		"a NUL":              {sent{values: filled("text", "a\x00b")}, "text", "“Long text” cannot be taken"},
		"broken text":        {sent{values: filled("text", "a\xffb")}, "text", "“Long text” cannot be taken"},
		"not a number":       {sent{values: filled("order", "1e400")}, "order", "“Order number” is not a number"},
		"no currency":        {sent{values: filled("sum", "5")}, "sum", "“Sum” needs a currency"},
		"no such day":        {sent{values: filled("day", "2026-02-30")}, "day", "“Day” is not a date"},
		"no zone":            {sent{values: filled("at", "2026-11-30T09:00")}, "at", "“Moment” needs a time zone"},
		"none of the list":   {sent{values: filled("kind", "c")}, "kind", "“Kind” cannot be “c”"},
		"an empty file":      {sent{values: filled(), files: map[string][]byte{"file": {}}}, "file", "“Attachment” cannot be taken: the file “name.json” is empty"},
		"a picture":          {sent{values: filled(), files: map[string][]byte{"file": {1}}, name: "a.png"}, "file", "it is not what its ending says"},
		"a program":          {sent{values: filled(), files: map[string][]byte{"file": {1}}, name: "a.exe"}, "file", "choose a .txt, .eml, .csv, .json, .pdf, .png"},
		"NUL in a file":      {sent{values: filled(), files: map[string][]byte{"file": []byte("a\x00")}, name: "a.txt"}, "file", "it has a NUL byte at byte 1"},
		"broken text, file":  {sent{values: filled(), files: map[string][]byte{"file": []byte("\xff\xfe")}, name: "a.csv"}, "file", "it is not UTF-8 text"},
		"10 MB of brackets":  {sent{values: filled(), files: map[string][]byte{"file": []byte(deep)}}, "file", "“Attachment” cannot be taken"},
		"10.1 MB":            {sent{values: filled(), files: map[string][]byte{"file": bytes.Repeat([]byte("x"), 10<<20+100<<10)}, name: "a.txt"}, "file", "larger than 10 MB"},
		"brackets in a list": {sent{values: filled("tags", strings.Repeat("[", 100_000))}, "tags", "“Tags"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			own := *s
			own.t = t
			p := own.in(tenants.Builder).upload(path, test.form).is(http.StatusUnprocessableEntity)
			require.True(t, strings.HasPrefix(p.title(), "Error: 1 thing to fix"), p.title())
			require.Contains(t, textOf(p.byTestID("faults")), test.says)
			anchor := "f-" + strings.ReplaceAll(test.field, ".", "_")
			require.Len(t, p.all("a", "href", "#"+anchor), 1, "the summary leads to the field")
			require.Contains(t, textOf(p.all("", "id", anchor+"-fault")[0]), test.says)
			if test.field != "title" {
				require.Equal(t, "A title", p.field("title"), "what was typed stays")
			}
			require.Equal(t, "k", p.field(formKeyName), "the form stays the same form")
		})
	}
	require.Empty(t, s.runs())
}

// What JSON cannot say in Unicode is kept as it came.
func TestStartKeepsLoneSurrogates(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	path := s.at("pipelines", s.publish(s.home, everyField("All fields")).String(), "start")
	b := s.in(tenants.Builder)
	p := b.upload(path, sent{values: filled(), files: map[string][]byte{"file": []byte(`{"a":"\ud800"}`)}}).is(http.StatusSeeOther).follow().is(http.StatusOK)
	require.Equal(t, `{"a":"\ud800"}`, b.get(attr(p.all("a", "class", "chosen-file")[0], "href")).is(http.StatusOK).body)
}

// A file's own text is told to be chosen again, since browsers do not keep files.
func TestStartSaysThatFilesMustBeChosenAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	path := s.at("pipelines", s.publish(s.home, everyField("All fields")).String(), "start")
	s.in(tenants.Builder).upload(path, sent{values: filled("title", ""), files: map[string][]byte{"file": []byte("{}")}}).
		is(http.StatusUnprocessableEntity).says("Choose “name.json” again: browsers do not keep files.")
}

// A body beyond the limit of the whole form is refused before it is read, and the limit
// told is the one that files have.
func TestStartRefusesWhatIsFarTooLarge(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	path := s.at("pipelines", s.publish(s.home, everyField("All fields")).String(), "start")
	s.in(tenants.Builder).upload(path, sent{values: filled(), files: map[string][]byte{"file": bytes.Repeat([]byte("x"), 12<<20)}}).
		is(http.StatusRequestEntityTooLarge).says("This file is too large", "10 MB")
	require.Empty(t, s.runs())
}

func TestStartTakesFilesUpToTheLimit(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	path := s.at("pipelines", s.publish(s.home, everyField("All fields")).String(), "start")
	b := s.in(tenants.Builder)
	for n, size := range []int{900 << 10, 1100 << 10, 9900 << 10} {
		form := sent{values: filled(formKeyName, strings.Repeat("k", n+1)), files: map[string][]byte{"file": bytes.Repeat([]byte("x"), size)}, name: "a.txt"}
		p := b.upload(path, form).is(http.StatusSeeOther).follow().is(http.StatusOK)
		require.Less(t, len(p.body), 150<<10, "a large input does not make a large page")
	}
	require.Len(t, s.runs(), 3)
}

// The same form sent twice at once, or again after going back, is one run; a new form
// is a new run.
func TestSameFormIsOneRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	path := s.at("pipelines", s.publish(s.home, askingDocument("Sign-off")).String(), "start")
	b := s.in(tenants.Builder)
	form := b.get(path).is(http.StatusSeeOther).follow().is(http.StatusOK)
	key := form.field(formKeyName)
	require.Contains(t, form.path, "form="+key, "going back returns to the same form")
	var both sync.WaitGroup
	pages := make([]*page, 2)
	for i := range pages {
		visitor := s.in(tenants.Builder)
		both.Go(func() { pages[i] = visitor.post(path, formKeyName, key, "topic", "the catalogue") })
	}
	both.Wait()
	for _, p := range pages {
		p.leadsTo(pages[0].header.Get("Location"))
	}
	b.get(form.path).is(http.StatusOK).says("This form has started", "Sending it again leads there")
	b.post(path, formKeyName, key, "topic", "the catalogue").leadsTo(pages[0].header.Get("Location"))
	b.post(path, formKeyName, key, "topic", "something else").is(http.StatusConflict).says("started before, with other input", "Nothing was started now")
	require.Len(t, s.runs(), 1)

	again := b.get(path).follow()
	require.NotEqual(t, key, again.field(formKeyName))
	b.post(path, formKeyName, again.field(formKeyName), "topic", "the catalogue").is(http.StatusSeeOther)
	require.Len(t, s.runs(), 2)
	b.post(path, "topic", "without a key").is(http.StatusBadRequest).says("one-time key")
	require.Len(t, s.runs(), 2)
}

// The sample can be filled in; unchanged it runs as the sample, changed as one's own.
func TestStartWithTheSample(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	template, _ := pipeline.TemplateBySlug("customer-email")
	path := s.at("pipelines", s.publish(s.home, template.Document).String(), "start")
	b := s.in(tenants.Builder)
	form := b.get(path+"?sample=1").is(http.StatusSeeOther).follow().is(http.StatusOK).says("The sample is filled in", "espresso-machine.eml", "The model is in stock again")
	send := func(key, hint string) engine.Run {
		b.post(path, formKeyName, key, sampleFileTag, form.field(sampleFileTag), "hint", hint).is(http.StatusSeeOther)
		return s.runs()[0].Run
	}
	require.True(t, send("one", "The model is in stock again since Wednesday.").Sample)
	require.False(t, send("two", "Say that we are sorry.").Sample)
}

func TestOnlyPublishedPipelinesStart(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var id pipeline.ID
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		id, err = pipeline.Create(ctx, tx, askingDocument("Draft"), "", s.home.people[tenants.Builder].User.ID)
		return err
	})
	b := s.in(tenants.Builder)
	b.get(s.at("pipelines", id.String())).is(http.StatusOK).says("Not published yet")
	b.get(s.at("pipelines", id.String(), "start") + "?form=k").is(http.StatusConflict).says("not published yet")
	b.post(s.at("pipelines", id.String(), "start"), formKeyName, "k", "topic", "x").is(http.StatusConflict)
	b.post(s.at("pipelines", id.String(), "sample"), "key", "k").is(http.StatusConflict)
}
