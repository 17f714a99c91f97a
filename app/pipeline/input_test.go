package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/expr"
)

// allTypes has one field of each type.
var allTypes = []Field{
	{Name: "t", Label: "Title", Type: TypeText, Required: true},
	{Name: "n", Label: "Number", Type: TypeNumber},
	{Name: "m", Label: "Sum", Type: TypeMoney, Currency: "EUR"},
	{Name: "m2", Label: "Any sum", Type: TypeMoney},
	{Name: "d", Label: "Day", Type: TypeDate},
	{Name: "dt", Label: "Moment", Type: TypeDateTime},
	{Name: "y", Label: "Sure", Type: TypeYesNo},
	{Name: "c", Label: "Colour", Type: TypeChoice, Choices: []Choice{{"red", "Red"}, {"blue", ""}}},
	{Name: "f", Label: "File", Type: TypeFile},
	{Name: "l", Label: "Tags", Type: TypeList, Of: &Field{Type: TypeText}},
	{Name: "ln", Label: "Figures", Type: TypeList, Of: &Field{Type: TypeNumber}},
	{Name: "r", Label: "Place", Type: TypeRecord, Fields: []Field{{Name: "city", Type: TypeText}, {Name: "zip", Label: "Code", Type: TypeNumber}}},
	{Name: "lr", Label: "Lines", Type: TypeList, Of: &Field{Type: TypeRecord, Fields: []Field{{Name: "q", Type: TypeNumber, Required: true}}}},
}

func form(pairs ...string) Form {
	f := Form{Values: map[string][]string{"t": {"x"}}, Files: map[string]Upload{}}
	for i := 0; i < len(pairs); i += 2 {
		f.Values[pairs[i]] = append(f.Values[pairs[i]], pairs[i+1])
	}
	return f
}

func TestFormsBecomeExactJSON(t *testing.T) {
	t.Parallel()
	f := form("n", " 9007199254740993 ", "m", "0012.50", "m2", "-.5", "m2.currency", "chf", "d", "2028-02-29",
		"dt", "2026-11-30T09:00", "dt.zone", "Europe/Berlin", "y", "on", "c", "blue", "l", "a\r\nb\r\n\r\n", "ln", "1.10", "ln", "2",
		"r.city", "Bremen", "r.zip", "028195", "lr", `[{"q":1e2}]`)
	f.Values["t"] = []string{"two\r\nlines 😀"}
	f.Files["f"] = Upload{`C:\docs\a.txt`, []byte("hello")}
	input, files, problems := ParseInput(allTypes, f)
	require.Empty(t, problems)
	require.Equal(t, `{"c":"blue","d":"2028-02-29","dt":"2026-11-30T09:00:00+01:00","f":{"digest":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824","name":"a.txt","size":5,"text":"hello","type":"text/plain"},`+
		`"l":["a","b"],"ln":[1.10,2],"lr":[{"q":1e2}],"m":{"amount":12.50,"currency":"EUR"},"m2":{"amount":-0.5,"currency":"CHF"},`+
		`"n":9007199254740993,"r":{"city":"Bremen","zip":28195},"t":"two\nlines 😀","y":true}`, string(input))
	require.Len(t, files, 1)
	require.Equal(t, StoredFile{"f", "a.txt", "text/plain", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", []byte("hello")}, files[0])
}

func TestEmptyFieldsAreNullOrTold(t *testing.T) {
	t.Parallel()
	input, files, problems := ParseInput(allTypes, form())
	require.Empty(t, problems)
	require.Empty(t, files)
	require.Equal(t, `{"c":null,"d":null,"dt":null,"f":null,"l":[],"ln":[],"lr":[],"m":null,"m2":null,"n":null,"r":{"city":null,"zip":null},"t":"x","y":false}`, string(input))

	required := []Field{}
	for _, f := range allTypes {
		f.Required = true
		required = append(required, f)
	}
	_, _, problems = ParseInput(required, Form{Values: map[string][]string{"y": {""}}})
	var named []string
	for _, p := range problems {
		require.Contains(t, p.Message, "is empty. Fill it in.")
		named = append(named, p.Field)
	}
	require.Equal(t, []string{"t", "n", "m", "m2", "d", "dt", "y", "c", "f", "l", "ln", "lr"}, named)
}

func TestFormProblemsNameTheFieldAndTheFix(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ field, value, want string }{
		{"n", "12,5", "“Number” is not a number that can be read (“12,5”). Write digits with a point, like 1234.50."},
		{"n", "1e400", "is not a number"}, {"n", "NaN", "is not a number"}, {"n", "-", "is not a number"}, {"n", ".", "is not a number"},
		{"n", "5.", "is not a number"}, {"n", "0x10", "is not a number"}, {"n", strings.Repeat("9", 101), "is not a number"}, {"n", "١٢", "is not a number"},
		{"m", "abc", "“Sum” is not a number"},
		{"m2", "5", "“Any sum” needs a currency of three letters, like EUR, not “”."},
		{"d", "2027-02-29", "“Day” is not a date that exists (“2027-02-29”)."}, {"d", "1.12.2026", "is not a date"},
		{"dt", "2026-11-30T09:00", "“Moment” needs a time zone, like Europe/Berlin."}, {"dt", "tomorrow", "is not a date with time and zone"},
		{"dt", "2026-11-30T09:00:00", "needs a time zone"},
		{"y", "maybe", "“Sure” is neither yes nor no."},
		{"c", "green", "“Colour” cannot be “green”. Choose one of the list."},
		{"t", "a\x00b", "“Title” cannot be taken: character 2 is NUL"}, {"t", "a\xff", "character 2 is half a character or broken UTF-8"},
		{"t", "\xed\xa0\x80", "half a character"}, {"t", strings.Repeat("x", MaxText+1), "is longer than 100000 characters"},
		{"ln", "1\nx", "“Figures, entry 2” is not a number"},
		{"r.zip", "x", "“Code” is not a number"},
		{"lr", "[[[[", "“Lines” is not a list that can be read"}, {"lr", `{"q":1}`, "must be a list"}, {"lr", `[{"q":"1"}]`, "“q” must be a number"},
		{"lr", `[{}]`, "“q” is empty"}, {"lr", `[{"q":1,"z":2}]`, "has no field “z”. It has: “q”."}, {"lr", strings.Repeat("[", 600), "nested deeper"},
		{"lr", `[{"q":1e999}]`, "more than 100 digits"},
	} {
		f := form()
		f.Values[c.field] = []string{c.value}
		input, files, problems := ParseInput(allTypes, f)
		require.NotEmpty(t, problems, c)
		require.Nil(t, input)
		require.Nil(t, files)
		require.Contains(t, problems[0].Message, c.want, c)
		require.True(t, strings.HasPrefix(problems[0].Field, strings.SplitN(c.field, ".", 2)[0]), problems[0].Field)
		require.NoError(t, expr.CheckText(problems[0].Message))
	}
}

func TestClocksThatChangeAreNoticed(t *testing.T) {
	t.Parallel()
	_, _, problems := ParseInput(allTypes, form("dt", "2027-03-28T02:30", "dt.zone", "Europe/Berlin"))
	require.Contains(t, problems[0].Message, "does not exist in Europe/Berlin, because the clocks change then")
	input, _, problems := ParseInput(allTypes, form("dt", "2026-10-25T02:30", "dt.zone", "Europe/Berlin"))
	require.Empty(t, problems)
	require.Contains(t, string(input), `"dt":"2026-10-25T02:30:00+02:00"`)
	for _, zone := range []string{"", "Local", "Nowhere/Land", "../../etc/passwd"} {
		_, _, problems = ParseInput(allTypes, form("dt", "2026-10-25T02:30", "dt.zone", zone))
		require.Contains(t, problems[0].Message, "needs a time zone", zone)
	}
}

func TestProgramsMayHandInJSON(t *testing.T) {
	t.Parallel()
	fields := []Field{{Name: "order", Type: TypeNumber}, {Name: "sum", Type: TypeNumber}, {Name: "f", Type: TypeFile}}
	input, files, problems := DecodeInput(fields, []byte(`{"order": 9007199254740993, "sum": 0.1, "f": {"name":"a.json","content":"{\"x\":1e400}"}}`))
	require.Empty(t, problems)
	require.Contains(t, string(input), `"order":9007199254740993,"sum":0.1`)
	require.Contains(t, string(input), `"data":{"x":1e400}`)
	require.Len(t, files, 1)
	for data, want := range map[string]string{
		`[]`: "“Input” must be a record", `{`: "not JSON that can be read", `{"x":1}`: "has no field “x”",
		`{"order":"7"}`: "“order” must be a number", `{"order":1e400}`: "more than 100 digits", `{"f":"x"}`: "must be a file with a name and its content",
		`{"f":{"name":"a.txt","content":"\u0000"}}`: "is NUL", `{"f":{"name":"a.exe","content":"x"}}`: "of a kind that cannot be read",
		`null`: "is empty", strings.Repeat("[", 10_000): "nested deeper",
	} {
		_, _, problems := DecodeInput(fields, []byte(data))
		require.NotEmpty(t, problems, data)
		require.Contains(t, problems[0].Message, want, data)
	}
}

func TestHostileFormsCannotMakeUsTalkForEver(t *testing.T) {
	t.Parallel()
	f := form()
	f.Values["ln"] = nil
	for range 10_000 {
		f.Values["ln"] = append(f.Values["ln"], "x")
	}
	_, _, problems := ParseInput(allTypes, f)
	require.LessOrEqual(t, len(problems), maxInputProblems)
}

func FuzzParseInput(f *testing.F) {
	for i, seed := range []string{"12.50", "2026-11-30T09:00", "[{\"q\":1}]", "a\nb", "\xff", "yes"} {
		f.Add(i, seed)
	}
	f.Fuzz(func(t *testing.T, which int, value string) {
		at := allTypes[max(which, -which-1)%len(allTypes)].Name
		fm := form(at+".zone", "Europe/Berlin", at+".city", value, at+".zip", value)
		fm.Values[at] = []string{value}
		input, _, problems := ParseInput(allTypes, fm)
		for _, p := range problems {
			require.NoError(t, expr.CheckText(p.Message))
		}
		if len(problems) > 0 {
			return
		}
		again, _, problems := DecodeInput(allTypes, input)
		require.Empty(t, problems, "what a form gives is good JSON input, too")
		require.Equal(t, string(input), string(again), fmt.Sprintf("%q", value))
	})
}
