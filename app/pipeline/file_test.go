package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/expr"
)

// read reads a file that must be good and gives the named entries as JSON.
func read(t testing.TB, name, data string, entries ...string) []string {
	t.Helper()
	v, err := ReadFile(name, []byte(data))
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		encoded, err := expr.EncodeJSON(v[e])
		require.NoError(t, err)
		out = append(out, string(encoded))
	}
	return out
}

func TestReadFileTellsWhatEveryFileIs(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{`"a.TXT"`, `"text/plain"`, `7`, `"hé\n"`},
		read(t, `../../etc\a.TXT`, "\xEF\xBB\xBFhé\n", "name", "type", "size", "text"))
	require.Equal(t, []string{`"a.json"`, `"application/json"`, `{"n":9007199254740993,"z":"\u0000"}`},
		read(t, "a.json", ` {"n": 9007199254740993, "z": "\u0000"} `, "name", "type", "data"))
	require.Equal(t, []string{`"Hi Bcc: x@y.example.txt"`}, read(t, "Hi\nBcc: x@y.example.txt", "x", "name"))
	long := read(t, strings.Repeat("ü", 500)+".txt", "x", "name")[0]
	require.LessOrEqual(t, len([]rune(long)), maxFileName+2)
	require.True(t, strings.HasSuffix(long, `.txt"`))
}

func TestReadFileTakesTables(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{`["no","name","column 3"]`, `[{"column 3":"","name":"Ömer, A.","no":"0012"},{"column 3":"x","name":"say \"hi\"","no":"=1+1"}]`},
		read(t, "t.csv", "no;name;\n0012;Ömer, A.;\n=1+1;\"say \"\"hi\"\"\";x\n", "columns", "rows"))
	require.Equal(t, []string{`["a","b"]`, `[]`}, read(t, "t.csv", "\xEF\xBB\xBF a ,b\r\n", "columns", "rows"))
	require.Equal(t, []string{`[{"a":"1","b":"2"}]`}, read(t, "t.csv", "a\tb\n1\t2", "rows"))
}

const mailHead = "From: \"Ana =?utf-8?q?M=C3=BCller?=\" <ana@postfach.example>\r\nReply-To: office@postfach.example\r\n" +
	"To: Service <service@nordlicht.example>, b@nordlicht.example\r\nSubject: =?iso-8859-1?q?Gr=FC=DFe?=\r\n =?utf-8?B?8J+YgA==?=\r\nDate: Thu, 26 Nov 2026 18:42:07 +0100\r\n"

func TestReadFileTakesMails(t *testing.T) {
	t.Parallel()
	plain := mailHead + "Content-Type: text/plain; charset=windows-1252\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nPreis: =80 5, sch=\r\n=F6n\r\n"
	require.Equal(t, []string{`"ana@postfach.example"`, `"Ana Müller"`, `"office@postfach.example"`, `"service@nordlicht.example, b@nordlicht.example"`,
		`"Grüße😀"`, `"2026-11-26T18:42:07+01:00"`, `"Preis: € 5, schön"`, `null`},
		read(t, "m.eml", plain, "from", "from_name", "reply_to", "to", "subject", "date", "body", "attachments"))
	require.Equal(t, []string{`"From: ana@postfach.example\nTo: service@nordlicht.example, b@nordlicht.example\nSubject: Grüße😀\nDate: 2026-11-26T18:42:07+01:00\n\nPreis: € 5, schön"`},
		read(t, "m.eml", plain, "text"))

	mixed := mailHead + "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=o\r\n\r\npreamble\r\n--o\r\nContent-Type: multipart/alternative; boundary=i\r\n\r\n" +
		"--i\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>HTML</p>\r\n--i\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nSGFsbG\r\n8g4pyT\r\n--i--\r\n" +
		"--o\r\nContent-Type: application/pdf; name=\"=?utf-8?q?R=C3=BCck.pdf?=\"\r\nContent-Disposition: attachment\r\nContent-Transfer-Encoding: base64\r\n\r\nAAECAw==\r\n--o--\r\n"
	require.Equal(t, []string{`"Hallo ✓"`, `[{"name":"Rück.pdf","size":4,"type":"application/pdf"}]`}, read(t, "m.eml", mixed, "body", "attachments"))

	html := mailHead + "Content-Type: text/html\r\n\r\n<html><head><title>no</title><style>p{}</style></head><body><script>alert(1)</script><p>Dear&nbsp;<b>all</b>,</p>" +
		"<div>5 &lt; 6<br>next</div><ul><li>one<li>two</ul><!-- no --><img src=x onerror=alert(1)>"
	require.Equal(t, []string{`"Dear all,\n\n5 < 6\nnext\n\none\ntwo"`}, read(t, "m.eml", html, "body"))

	require.Equal(t, []string{`null`, `null`, `"just text"`}, read(t, "m.eml", "Subject:\r\nFrom: not an address\r\n\r\njust text", "from", "date", "body"))
}

func TestHostileFilesAreRefusedWithNameAndReason(t *testing.T) {
	t.Parallel()
	nested := "Content-Type: multipart/mixed; boundary=b0\r\n\r\n"
	for i := range 50 {
		nested += fmt.Sprintf("--b%d\r\nContent-Type: multipart/mixed; boundary=b%d\r\n\r\n", i, i+1)
	}
	parts := "Content-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--b\r\n\r\nx\r\n", 1000) + "--b--\r\n"
	for _, c := range []struct{ name, data, want string }{
		{"a.exe", "x", "of a kind that cannot be read; choose a .txt, .eml, .csv, .json, .pdf, .png, .jpg, .gif or .webp file"},
		{"a.png", "\x89PNG", "it is not what its ending says"}, {"a.jpg", "GIF89a", "it is not what its ending says"}, {"a.pdf", "x", "it is not what its ending says"}, {"a.webp", "RIFF1234WAVE", "it is not what its ending says"},
		{"noending", "x", "of a kind that cannot be read"}, {"", "x", "of a kind"},
		{"a.txt", "", "is empty"},
		{"a.txt", strings.Repeat("x", MaxInputFile+1), "is larger than 10 MB"},
		{"a.txt", "a\x00b", "it has a NUL byte at byte 1"}, {"a.txt", "ab\xff", "it is not UTF-8 text at byte 2"},
		{"a.json", strings.Repeat("[", MaxInputFile), "nested deeper than 500"}, {"a.json", strings.Repeat(`{"a":`, MaxInputFile/5), "nested deeper"},
		{"a.json", `{"a":1,}`, "unexpected '}'"}, {"a.json", "{\"a\":\"\xff\"}", "not UTF-8 text at byte 6"}, {"a.json", `{"a":NaN}`, "unexpected 'N' in the JSON (at a, byte 5)"},
		{"a.csv", "\n\n", "no first row"}, {"a.csv", "a,b\n1\n", "line 2 does not have 2 cells like the first row"}, {"a.csv", "a,b\n\"1,2\n", "has a quote in the wrong place"},
		{"a.csv", "a,a\n", "two columns are called “a”"}, {"a.csv", strings.Repeat("x,", 300) + "\n", "it has 301 columns"},
		{"a.csv", "a\n" + strings.Repeat("1\n", maxTableRows+1), "more than 20000 rows"}, {"a.csv", strings.Repeat("\"", 1<<20), "the name of column 1 is longer than 500 bytes"},
		{"a.eml", "no header at all", "does not begin with the header"}, {"a.eml", strings.Repeat("X: y\r\n", 100_000), "its header is longer than"},
		{"a.eml", "Subject: " + strings.Repeat("x", 5<<20) + "\r\n\r\nx", "its header is longer than"},
		{"a.eml", nested, "nested more than 10 deep"}, {"a.eml", parts, "more than 200 parts"},
		{"a.eml", "Content-Type: multipart/mixed\r\n\r\nx", "not how they are told apart"},
		{"a.eml", "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nx", "a part is damaged"},
		{"a.eml", "Content-Type: text/plain; charset=klingon\r\n\r\nx", "the character set “klingon”, which is not known"},
		{"a.eml", "Content-Type: text/plain; charset=utf-8\r\n\r\na\xff", "not UTF-8 text at its byte 1, though it says so"},
		{"a.eml", "Subject: s\r\n\r\na\x00", "holds a NUL byte"}, {"a.eml", "Content-Transfer-Encoding: base64\r\n\r\n!!!", "its encoding cannot be undone"},
		{"a.eml", "Subject: a\xff\r\n\r\nx", "its subject: it holds something that is not text"}, {"a.eml", "Subject: =?klingon?q?x?=\r\n\r\nx", "its subject: it is written in a way"},
	} {
		start := time.Now()
		_, err := ReadFile(c.name, []byte(c.data))
		require.ErrorContains(t, err, c.want, "%s %.40q", c.name, c.data)
		require.ErrorContains(t, err, "the file “"+c.name+"”")
		require.NoError(t, expr.CheckText(err.Error()))
		require.Less(t, len(err.Error()), 600)
		require.Less(t, time.Since(start), 5*time.Second)
	}
}

// Images and PDF are kept as they are, with the type of their ending and no text.
func TestImagesAndDocumentsAreTaken(t *testing.T) {
	t.Parallel()
	for name, file := range map[string][2]string{
		"a.PNG": {"\x89PNG\r\n\x1a\n\x00", "image/png"}, "a.jpg": {"\xff\xd8\xff\xe0", "image/jpeg"}, "a.jpeg": {"\xff\xd8\xff\xe1", "image/jpeg"},
		"a.gif": {"GIF89a", "image/gif"}, "a.webp": {"RIFF\x01\x02\x03\x04WEBP", "image/webp"}, "a.pdf": {"%PDF-1.7\x00", "application/pdf"},
	} {
		record, err := ReadFile(name, []byte(file[0]))
		require.NoError(t, err, name)
		require.Equal(t, []any{file[1], "", json.Number(strconv.Itoa(len(file[0])))}, []any{record["type"], record["text"], record["size"]}, name)
	}
}

func TestLargeGoodFilesAreRead(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("äöü\n", MaxInputFile/7)
	require.Equal(t, len(text), len(mustRead(t, "a.txt", text)["text"].(string)))
	html := "Content-Type: text/html\r\n\r\n" + strings.Repeat("<div>", 1<<20) + "deep"
	require.Equal(t, "deep", mustRead(t, "a.eml", html)["body"])
}

func mustRead(t testing.TB, name, data string) map[string]any {
	t.Helper()
	v, err := ReadFile(name, []byte(data))
	require.NoError(t, err)
	return v
}

// fuzzFile reads anything as one kind of file: it may refuse it, with a sentence,
// or give a value that can be stored and shown.
func fuzzFile(f *testing.F, name string) {
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		v, err := ReadFile(name, data)
		require.Equal(t, before, data, "the bytes stay what they were")
		if err != nil {
			require.NoError(t, expr.CheckText(err.Error()))
			return
		}
		encoded, err := expr.EncodeJSON(v)
		require.NoError(t, err)
		_, err = expr.DecodeJSON(encoded)
		require.NoError(t, err)
		require.NoError(t, expr.CheckText(v["text"].(string)))
	})
}

func FuzzReadMail(f *testing.F) {
	f.Add([]byte(mailHead + "\r\nhello"))
	f.Add([]byte(mailHead + "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\nContent-Type: text/html; charset=koi8-r\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<p>=C1</p>\r\n--b--"))
	f.Add([]byte("Content-Transfer-Encoding: base64\r\n\r\nSGFsbG8="))
	fuzzFile(f, "f.eml")
}

func FuzzReadTable(f *testing.F) {
	f.Add([]byte("a;b\n1;\"2\n\"\n"))
	f.Add([]byte("\xEF\xBB\xBFa,,\n,,"))
	fuzzFile(f, "f.csv")
}

func FuzzReadJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1e400,"\ud800\u0000"]}`))
	fuzzFile(f, "f.json")
}
