package web

import (
	"bytes"
	"encoding/csv"
	"mime"
	"net/http"
	"strings"

	"tollgate/web/ui"
)

// csvFile hands out a table as a file for spreadsheets.
func (v *visit) csvFile(name string, records [][]string) error {
	var file bytes.Buffer
	w := csv.NewWriter(&file)
	w.UseCRLF = true // as RFC 4180 has it
	for _, record := range records {
		for i, cell := range record {
			record[i] = inert(cell)
		}
		if err := w.Write(record); err != nil {
			return err
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return err
	}
	h := v.Response().Header()
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name + ".csv"}))
	h.Set("Content-Security-Policy", contentPolicy+"; sandbox")
	return v.Blob(http.StatusOK, "text/csv; charset=utf-8", file.Bytes())
}

// inert keeps a spreadsheet from running a cell: one that begins as a formula does gets
// an apostrophe, which spreadsheets take for "this is text". Numbers stay numbers.
func inert(cell string) string {
	cell = strings.Map(turned, ui.Clean(cell))
	begin := strings.TrimLeft(cell, " \t\r\n\u00a0")
	if begin == "" || plainNumber(begin) || !strings.ContainsRune("=+-@＝＋－＠", []rune(begin)[0]) && begin == cell {
		return cell
	}
	return "'" + cell
}

// turned drops the characters that turn around what stands behind them, also in other cells.
func turned(r rune) rune {
	if r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' {
		return -1
	}
	return r
}

// plainNumber tells an amount, which may begin with a minus.
func plainNumber(cell string) bool {
	digits := strings.TrimPrefix(cell, "-")
	return digits != "" && strings.Trim(digits, "0123456789.") == "" && strings.Count(digits, ".") <= 1
}
