package pipeline

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Bounds of a table.
const (
	maxTableRows    = 20_000
	maxTableColumns = 200
	maxTableCells   = 400_000
	maxColumnName   = 500 // bytes
)

// readCSV takes a table with a first row of names. Cells stay text, exactly as
// written, so that 0012 stays 0012.
func readCSV(into map[string]any, data []byte) error {
	text, err := plainText(data)
	if err != nil {
		return err
	}
	r := csv.NewReader(strings.NewReader(text))
	r.Comma = separator(text)
	columns, err := columnNames(r)
	if err != nil {
		return err
	}
	rows := []any{}
	for {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return tableError(err, len(columns))
		}
		if len(rows) >= maxTableRows || (len(rows)+1)*len(columns) > maxTableCells {
			return fmt.Errorf("it has more than %d rows or %d cells; split it", maxTableRows, maxTableCells)
		}
		row := make(map[string]any, len(columns))
		for i, name := range columns {
			row[name] = cells[i]
		}
		rows = append(rows, row)
	}
	into["text"], into["rows"] = text, rows
	into["columns"] = anyList(columns)
	return nil
}

// separator is the one of comma, semicolon and tab that the first line has most of.
func separator(text string) rune {
	line, _, _ := strings.Cut(text, "\n")
	best, most := ',', 0
	for _, c := range ",;\t" {
		if n := strings.Count(line, string(c)); n > most {
			best, most = c, n
		}
	}
	return best
}

// Rows are records by these names, so two equal ones would lose a column in silence.
func columnNames(r *csv.Reader) ([]string, error) {
	first, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("it has no first row with the names of the columns")
	}
	if err != nil {
		return nil, tableError(err, 0)
	}
	if len(first) > maxTableColumns {
		return nil, fmt.Errorf("it has %d columns; at most %d are possible", len(first), maxTableColumns)
	}
	seen := map[string]bool{}
	for i, name := range first {
		if first[i] = strings.TrimSpace(name); first[i] == "" {
			first[i] = fmt.Sprintf("column %d", i+1)
		}
		if len(first[i]) > maxColumnName {
			return nil, fmt.Errorf("the name of column %d is longer than %d bytes", i+1, maxColumnName)
		}
		if seen[first[i]] {
			return nil, fmt.Errorf("two columns are called “%s”; rename one", shown(first[i]))
		}
		seen[first[i]] = true
	}
	return first, nil
}

// The line is the file's own, so that people find it in their spreadsheet.
func tableError(err error, columns int) error {
	var bad *csv.ParseError
	switch {
	case !errors.As(err, &bad):
		return fmt.Errorf("read the table: %w", err)
	case errors.Is(err, csv.ErrFieldCount):
		return fmt.Errorf("line %d does not have %s like the first row", bad.Line, plural(columns, "cell", "cells"))
	}
	return fmt.Errorf("line %d has a quote in the wrong place", bad.Line)
}

func anyList(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}
