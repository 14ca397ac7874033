package pgwire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// kind is a type of PostgreSQL as the protocol names it.
type kind struct {
	oid      uint32
	size     int16
	modifier int32 // -1: none
}

// voidOID is the type of nothing, whose only value has no bytes.
const voidOID = 2278

// textKind is the kind of every value without a more specific type.
func textKind() kind { return kind{pgtype.TextOID, -1, -1} }

// kindOf gives the number and the width of a type by the name that answers use; text for others.
func kindOf(name string) kind {
	switch name {
	case "boolean":
		return kind{pgtype.BoolOID, 1, -1}
	case "smallint":
		return kind{pgtype.Int2OID, 2, -1}
	case "integer":
		return kind{pgtype.Int4OID, 4, -1}
	case "bigint":
		return kind{pgtype.Int8OID, 8, -1}
	case "numeric":
		return kind{pgtype.NumericOID, -1, -1}
	case "real":
		return kind{pgtype.Float4OID, 4, -1}
	case "double precision":
		return kind{pgtype.Float8OID, 8, -1}
	case "character":
		return kind{pgtype.BPCharOID, -1, -1}
	case "date":
		return kind{pgtype.DateOID, 4, -1}
	case "timestamp without time zone":
		return kind{pgtype.TimestampOID, 8, -1}
	case "timestamp with time zone":
		return kind{pgtype.TimestamptzOID, 8, -1}
	case "interval":
		return kind{pgtype.IntervalOID, 16, -1}
	case "uuid":
		return kind{pgtype.UUIDOID, 16, -1}
	case "json":
		return kind{pgtype.JSONOID, -1, -1}
	case "void":
		return kind{voidOID, 4, -1}
	case "smallint[]":
		return kind{pgtype.Int2ArrayOID, -1, -1}
	case "integer[]":
		return kind{pgtype.Int4ArrayOID, -1, -1}
	case "bigint[]":
		return kind{pgtype.Int8ArrayOID, -1, -1}
	case "numeric[]":
		return kind{pgtype.NumericArrayOID, -1, -1}
	case "real[]":
		return kind{pgtype.Float4ArrayOID, -1, -1}
	case "double precision[]":
		return kind{pgtype.Float8ArrayOID, -1, -1}
	default:
		return textKind()
	}
}

// column is one output.
type column struct {
	name string
	kind kind
}

// value is one value in PostgreSQL's text form; nil is NULL.
type value []byte

// result is what a statement gave: rows, or a tag alone.
type result struct {
	columns []column // nil: there are no rows
	rows    [][]value
	tag     string  // of CommandComplete; of rows, what stands before their number
	size    int     // bytes of the values
	formats []int16 // of a binary cursor, whatever was asked for
	in      []int16 // the formats that the values are in; nil: text
}

const (
	textFormat   = pgproto3.TextFormat
	binaryFormat = pgproto3.BinaryFormat
)

// formatOf is the format of one of n values, by the rules of Bind: none given is text, one counts for all.
func formatOf(formats []int16, i int) int16 {
	switch {
	case len(formats) == 0:
		return textFormat
	case len(formats) == 1:
		return formats[0]
	default:
		return formats[i]
	}
}

// checkFormats refuses formats that are not there, or are not those of n values.
func checkFormats(formats []int16, n int) *refusal {
	if len(formats) > 1 && len(formats) != n {
		return refusef(stateProtocol, "there are %d formats for %d values", len(formats), n)
	}
	for _, f := range formats {
		if f != textFormat && f != binaryFormat {
			return refusef(stateValue, "there is no format %d", f)
		}
	}
	return nil
}

// describe makes the RowDescription of columns.
func describe(columns []column, formats []int16) *pgproto3.RowDescription {
	d := &pgproto3.RowDescription{Fields: make([]pgproto3.FieldDescription, len(columns))}
	for i, c := range columns {
		d.Fields[i] = pgproto3.FieldDescription{Name: []byte(clean(c.name)), DataTypeOID: c.kind.oid, DataTypeSize: c.kind.size,
			TypeModifier: c.kind.modifier,
			Format:       formatOf(formats, i)}
	}
	return d
}

// codec turns values from one format into another. It belongs to one session.
type codec struct{ types *pgtype.Map }

func newCodec() codec { return codec{pgtype.NewMap()} }

// encode gives a value that is in one format in another.
func (c codec) encode(v value, k kind, in, format int16) ([]byte, error) {
	if v == nil || format == in || isText(k.oid) {
		return v, nil
	}
	return c.convert(v, k.oid, in, format)
}

// convert reads a value in one format and writes it in another.
func (c codec) convert(v []byte, oid uint32, from, to int16) ([]byte, error) {
	t, ok := c.types.TypeForOID(oid)
	if !ok {
		return nil, fmt.Errorf("pgwire: no type %d", oid)
	}
	decoded, err := t.Codec.DecodeValue(c.types, oid, from, v)
	if err != nil {
		return nil, err
	}
	return c.types.Encode(oid, to, decoded, nil)
}

// isText reports whether both formats of a type are the same bytes.
func isText(oid uint32) bool {
	switch oid {
	case pgtype.TextOID, pgtype.VarcharOID, pgtype.BPCharOID, pgtype.NameOID, pgtype.JSONOID, pgtype.UnknownOID, voidOID, 0:
		return true
	default:
		return false
	}
}

// takes reports whether parameters may be of a type.
func (c codec) takes(oid uint32) bool { return takesOne(oid) || takesOne(c.elementOf(oid)) }

// elementOf is the type of an array's elements; 0 for what is no array.
func (c codec) elementOf(oid uint32) uint32 {
	if t, ok := c.types.TypeForOID(oid); ok {
		if array, ok := t.Codec.(*pgtype.ArrayCodec); ok {
			return array.ElementType.OID
		}
	}
	return 0
}

// takesOne reports whether parameters may be of a type that is no array.
func takesOne(oid uint32) bool {
	switch oid {
	case pgtype.BoolOID, pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.Float4OID, pgtype.Float8OID, pgtype.NumericOID,
		pgtype.TextOID,
		pgtype.VarcharOID, pgtype.BPCharOID, pgtype.NameOID, pgtype.OIDOID, pgtype.DateOID, pgtype.TimeOID, pgtype.TimestampOID,
		pgtype.TimestamptzOID, pgtype.IntervalOID, pgtype.UUIDOID:
		return true
	default:
		return false
	}
}

// argument reads the value of a parameter as text; nil is NULL.
func (c codec) argument(v []byte, oid uint32, format int16, number int) (value, *refusal) {
	if v == nil {
		return nil, nil
	}
	if format == binaryFormat {
		var err error
		if element := c.elementOf(oid); element != 0 {
			v, err = c.array(v, element)
		} else if !isText(oid) {
			v, err = c.shielded(v, oid)
		}
		if err != nil {
			return nil, refusef(stateBinary, "incorrect binary data format in bind parameter %d", number)
		}
	}
	if format == textFormat && oid == pgtype.DateOID {
		v = withoutZone(v)
	}
	if !utf8.Valid(v) || containsZero(v) {
		return nil, refusef(stateText, "invalid byte sequence for encoding \"UTF8\" in bind parameter %d", number)
	}
	return append(value{}, v...), nil
}

// withoutZone leaves out a time zone behind a date, as PostgreSQL does: pgjdbc sends one.
func withoutZone(v []byte) []byte {
	for _, layout := range []string{"2006-01-02 -07", "2006-01-02 -07:00", "2006-01-02 -07:00:00"} {
		if _, err := time.Parse(layout, string(v)); err == nil {
			return v[:len(time.DateOnly)]
		}
	}
	return v
}

// shielded reads binary data that may be anything: what the library cannot read is an error, however it says so.
func (c codec) shielded(v []byte, oid uint32) (text []byte, err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("pgwire: not a value of type %d", oid)
		}
	}()
	if want := kindSize(oid); want > 0 && len(v) != want {
		return nil, fmt.Errorf("pgwire: %d bytes", len(v))
	}
	if oid == pgtype.NumericOID && !plausibleNumeric(v) {
		return nil, fmt.Errorf("pgwire: not a numeric")
	}
	return c.convert(v, oid, binaryFormat, textFormat)
}

// array reads a binary array of one dimension as text, every element in quotation marks. The library would make room for as many elements
// as the head says: dimensions, whether there are NULLs, type of the elements; of each dimension, its length and its first index.
func (c codec) array(v []byte, element uint32) ([]byte, error) {
	const head, dimension, length = 12, 8, 4
	errArray := errors.New("pgwire: not an array of one dimension")
	if len(v) < head || binary.BigEndian.Uint32(v[8:]) != element {
		return nil, errArray
	}
	switch dimensions := binary.BigEndian.Uint32(v); {
	case dimensions == 0 && len(v) == head:
		return []byte("{}"), nil
	case dimensions != 1 || len(v) < head+dimension:
		return nil, errArray
	}
	elements := binary.BigEndian.Uint32(v[head:])
	text := []byte("{")
	for v = v[head+dimension:]; len(v) >= length; elements-- {
		size := int32(binary.BigEndian.Uint32(v))
		if v = v[length:]; int64(size) > int64(len(v)) || size < -1 || len(text) > maxMessage {
			return nil, errArray
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		if size < 0 {
			text = append(text, "NULL"...)
			continue
		}
		one := v[:size]
		if v = v[size:]; !isText(element) {
			var err error
			if one, err = c.shielded(one, element); err != nil {
				return nil, err
			}
		}
		text = append(text, '"')
		for _, b := range one {
			if b == '"' || b == '\\' {
				text = append(text, '\\')
			}
			text = append(text, b)
		}
		text = append(text, '"')
	}
	if elements != 0 || len(v) != 0 {
		return nil, errArray
	}
	return append(text, '}'), nil
}

// kindSize is the width of a type's binary form; 0 where it varies.
func kindSize(oid uint32) int {
	switch oid {
	case pgtype.BoolOID:
		return 1
	case pgtype.Int2OID:
		return 2
	case pgtype.Int4OID, pgtype.Float4OID, pgtype.OIDOID, pgtype.DateOID:
		return 4
	case pgtype.Int8OID, pgtype.Float8OID, pgtype.TimeOID, pgtype.TimestampOID, pgtype.TimestamptzOID:
		return 8
	case pgtype.IntervalOID, pgtype.UUIDOID:
		return 16
	default:
		return 0
	}
}

// maxNumericGroups bounds the groups of four digits before and after the point of a parameter: more digits fit no column.
const maxNumericGroups = 64

// plausibleNumeric looks at the head of a binary numeric before the library makes a number of it that has as many digits as
// the head says: groups, weight, sign, scale.
func plausibleNumeric(v []byte) bool {
	const head = 8
	if len(v) < head {
		return false
	}
	groups, weight, scale := int(binary.BigEndian.Uint16(v)), int(int16(binary.BigEndian.Uint16(v[2:]))),
		int(binary.BigEndian.Uint16(v[6:]))
	return len(v) == head+2*groups && groups <= maxNumericGroups && weight < maxNumericGroups && weight > -maxNumericGroups &&
		scale <= 4*maxNumericGroups
}

func containsZero(v []byte) bool {
	return slices.Contains(v, 0)
}
