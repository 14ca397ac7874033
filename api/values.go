package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// Decimal is an exact decimal number as text. It is written as a JSON string and read from a string or a number, whose
// digits are kept as they stand: no value ever passes through a float. The empty Decimal is null: no number.
//
// It does not check that the text is a number: the gateway does, and names the field.
type Decimal string

// MarshalJSON writes a string, or null for the empty Decimal.
func (d Decimal) MarshalJSON() ([]byte, error) {
	if d == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(d))
}

// UnmarshalJSON keeps the text of a string or a number. Of anything else, the empty string among it, it keeps the JSON
// text, which is no number: the reader of the amount refuses it and can name the field.
func (d *Decimal) UnmarshalJSON(text []byte) error {
	var s string
	switch {
	case bytes.Equal(text, []byte("null")):
		*d = ""
	case json.Unmarshal(text, &s) == nil && s != "":
		*d = Decimal(s)
	default:
		*d = Decimal(text)
	}
	return nil
}

// Value is one value of an answer as JSON: a number, a string, true, false or null. The zero Value is null.
//
// Whole numbers beyond ±2^53 are strings, since many readers of JSON would round them.
type Value struct{ raw string }

// maxExactInteger is the largest n for which every whole number up to n is a float64 (RFC 8259, section 6).
const maxExactInteger = 1 << 53

// Null is SQL's NULL.
func Null() Value { return Value{} }

// Text is a JSON string.
func Text(s string) Value {
	b, err := json.Marshal(s)
	if err != nil { // a string always encodes
		return Value{}
	}
	return Value{string(b)}
}

// Bool is a JSON boolean.
func Bool(b bool) Value { return Value{strconv.FormatBool(b)} }

// Number is a JSON number from decimal text. Text that JSON cannot hold as a number (NaN, Infinity), and whole numbers
// beyond ±2^53, become strings.
func Number(text string) Value {
	if !json.Valid([]byte(text)) || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return Text(text)
	}
	if isWhole(text) {
		if n, err := strconv.ParseInt(text, 10, 64); err != nil || n > maxExactInteger || n < -maxExactInteger {
			return Text(text)
		}
	}
	return Value{text}
}

// isWhole reports whether a number is written without fraction and exponent.
func isWhole(text string) bool {
	for _, c := range text {
		if c != '-' && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// IsNull reports whether the value is null.
func (v Value) IsNull() bool { return v.raw == "" || v.raw == "null" }

// IsNumber reports whether the value is a JSON number.
func (v Value) IsNumber() bool {
	return v.raw != "" && (v.raw[0] == '-' || v.raw[0] >= '0' && v.raw[0] <= '9')
}

// IsBool reports whether the value is true or false.
func (v Value) IsBool() bool { return v.raw == "true" || v.raw == "false" }

// String is the value as plain text: strings without quotes, "" for null.
func (v Value) String() string {
	if v.IsNull() {
		return ""
	}
	if v.raw[0] == '"' {
		var s string
		if err := json.Unmarshal([]byte(v.raw), &s); err == nil {
			return s
		}
	}
	return v.raw
}

// MarshalJSON writes the value.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.raw == "" {
		return []byte("null"), nil
	}
	return []byte(v.raw), nil
}

// UnmarshalJSON reads any scalar.
func (v *Value) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		return errors.New("a value must be a scalar")
	}
	v.raw = string(text)
	return nil
}

// MarshalJSON writes the problem with both its named and its extra members.
func (p Problem) MarshalJSON() ([]byte, error) {
	type plain Problem
	body, err := json.Marshal(plain(p))
	if err != nil || len(p.Extra) == 0 {
		return body, err
	}
	extra, err := json.Marshal(p.Extra)
	if err != nil {
		return nil, err
	}
	// Two objects become one: {"a":1} and {"b":2} -> {"a":1,"b":2}.
	body[len(body)-1] = ','
	return append(body, extra[1:]...), nil
}

// UnmarshalJSON reads a problem; members without a field of their own go to Extra when they are strings.
func (p *Problem) UnmarshalJSON(text []byte) error {
	type plain Problem
	if err := json.Unmarshal(text, (*plain)(p)); err != nil {
		return err
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	for _, known := range []string{"type", "title", "status", "detail", "hint", "code", "position", "request_id"} {
		delete(members, known)
	}
	for name, raw := range members {
		var s string
		if json.Unmarshal(raw, &s) == nil {
			if p.Extra == nil {
				p.Extra = map[string]string{}
			}
			p.Extra[name] = s
		}
	}
	return nil
}

// Confidence says which intervals are asked for. It is written and read as a number where it is a level alone, else as an object.
type Confidence struct {
	Level *float64 `json:"level,omitempty"` // of an interval, in (0, 1); 0.95 when absent
	// Simultaneous asks for intervals that all hold together with the level, which makes them wider.
	Simultaneous bool `json:"simultaneous,omitempty"`
}

// Level asks for intervals that hold with a level, each for itself.
func Level(level float64) *Confidence { return &Confidence{Level: &level} }

// MarshalJSON writes a number, or an object.
func (c Confidence) MarshalJSON() ([]byte, error) {
	if c.Level != nil && !c.Simultaneous {
		return json.Marshal(*c.Level)
	}
	type members Confidence // without this method
	return json.Marshal(members(c))
}

var errConfidence = errors.New("api: a confidence is a number, or an object with level and simultaneous")

// UnmarshalJSON reads a number, or an object with no other members, whose names are written to the letter.
func (c *Confidence) UnmarshalJSON(text []byte) error {
	*c = Confidence{}
	var level float64
	if json.Unmarshal(text, &level) == nil {
		c.Level = &level
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	for name, value := range members {
		into := map[string]any{"level": &c.Level, "simultaneous": &c.Simultaneous}[name]
		if into == nil {
			return errConfidence
		}
		if err := json.Unmarshal(value, into); err != nil {
			return err
		}
	}
	return nil
}
