package pgwire

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5/pgproto3"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/statement"
)

// copyOut answers COPY (query) TO STDOUT.
func (c *session) copyOut(ctx context.Context, p *portal, command statement.Copy) (*result, *refusal) {
	if p.of.one.Kind == statement.Data && len(command.ForceQuote) > 0 { // before it costs
		if refused := c.columnsOf(ctx, p.of); refused != nil {
			return nil, refused
		}
		if _, refused := quotedOf(p.of.columns, command.ForceQuote); refused != nil {
			return nil, refused
		}
	}
	r, refused := c.perform(ctx, p)
	if refused != nil {
		return nil, refused
	}
	quoted, refused := quotedOf(r.columns, command.ForceQuote)
	if refused != nil {
		return nil, refused
	}
	w := copyWriter{c: c, r: r, command: command, quoted: quoted}
	lines, refused := w.lines()
	if refused != nil {
		return nil, refused // before the first byte: what cannot be written is not begun
	}
	size := weight(r.rows)
	for _, line := range lines {
		size += rowBytes + len(line)
	}
	c.memory.Resize(int64(c.size() + size)) // until the message is answered
	format, formats := byte(textFormat), make([]uint16, len(r.columns))
	if command.Format == statement.CopyBinary {
		format = binaryFormat
		for i := range formats {
			formats[i] = binaryFormat
		}
	}
	c.send(&pgproto3.CopyOutResponse{OverallFormat: format, ColumnFormatCodes: formats})
	for _, line := range lines {
		c.send(&pgproto3.CopyData{Data: line})
	}
	c.send(&pgproto3.CopyDone{})
	return done("COPY "+strconv.Itoa(len(r.rows)), nil)
}

// quotedOf says of each column whether it is among the names, which must all be there.
func quotedOf(columns []column, names []string) ([]bool, *refusal) {
	quoted := make([]bool, len(columns))
	for _, name := range names {
		at := slices.IndexFunc(columns, func(column column) bool { return column.name == name })
		if at < 0 {
			return nil, refusef(stateNoColumn, "column %s does not exist", fault.Quote(name))
		}
		quoted[at] = true
	}
	return quoted, nil
}

// copyWriter writes rows as COPY does.
type copyWriter struct {
	c       *session
	r       *result
	command statement.Copy
	quoted  []bool
}

// lines are the messages of the rows.
func (w *copyWriter) lines() ([][]byte, *refusal) {
	if w.command.Format == statement.CopyBinary {
		return w.binaryLines()
	}
	var lines [][]byte
	if w.command.Header {
		var line []byte
		for i, column := range w.r.columns {
			line = w.field(line, i, value(column.name), false)
		}
		lines = append(lines, append(line, '\n'))
	}
	for _, row := range w.r.rows {
		var line []byte
		for i, v := range row {
			line = w.field(line, i, v, w.command.ForceAll || w.quoted[i])
		}
		lines = append(lines, append(line, '\n'))
	}
	return lines, nil
}

// field adds one value to a line.
func (w *copyWriter) field(line []byte, i int, v value, quoted bool) []byte {
	if i > 0 {
		line = append(line, w.command.Delimiter)
	}
	switch {
	case v == nil:
		return append(line, w.command.Null...)
	case w.command.Format == statement.CopyCSV:
		return w.csv(line, v, quoted)
	default:
		return w.escaped(line, v)
	}
}

// csv quotes what would be read as something else: separators, quotes, line ends, the mark of NULL, and the mark of the end.
func (w *copyWriter) csv(line []byte, v value, quoted bool) []byte {
	special := []byte{w.command.Delimiter, w.command.Quote, '\n', '\r'}
	alone := len(w.r.columns) == 1 && string(v) == `\.`
	if !quoted && !alone && string(v) != w.command.Null && !bytes.ContainsAny(v, string(special)) {
		return append(line, v...)
	}
	line = append(line, w.command.Quote)
	for _, b := range v {
		if b == w.command.Quote || b == w.command.Escape {
			line = append(line, w.command.Escape)
		}
		line = append(line, b)
	}
	return append(line, w.command.Quote)
}

// escaped writes the text format: a backslash before what would be read as something else.
func (w *copyWriter) escaped(line []byte, v value) []byte {
	const named = "\b\f\n\r\t\v"
	for _, b := range v {
		switch at := bytes.IndexByte([]byte(named), b); {
		case at >= 0:
			line = append(line, '\\', "bfnrtv"[at])
		case b == '\\' || b == w.command.Delimiter:
			line = append(line, '\\', b)
		default:
			line = append(line, b)
		}
	}
	return line
}

// binaryLines write the binary format: a head, rows, and a mark of the end (PostgreSQL's documentation, COPY, "Binary Format"). The head is
// in the first message together with what follows it, as PostgreSQL sends it: psycopg 3 reads one row of each message.
func (w *copyWriter) binaryLines() ([][]byte, *refusal) {
	const none, last = 0xffffffff, 0xffff
	var lines [][]byte
	line := append([]byte("PGCOPY\n\xff\r\n\x00"), make([]byte, 8)...)
	for i := range w.r.rows {
		row, err := w.c.encodeRow(w.r, i, []int16{binaryFormat})
		if err != nil {
			return nil, refusalOf(err, nil)
		}
		line = binary.BigEndian.AppendUint16(line, uint16(len(row)))
		for _, v := range row {
			if v == nil {
				line = binary.BigEndian.AppendUint32(line, none)
				continue
			}
			line = append(binary.BigEndian.AppendUint32(line, uint32(len(v))), v...)
		}
		lines, line = append(lines, line), nil
	}
	return append(lines, binary.BigEndian.AppendUint16(line, last)), nil
}
