// Package strictjson refuses JSON that two readers could understand differently. RFC 8259 leaves open what a member that is given twice
// means, and encoding/json silently takes the last one and ignores what follows the value.
//
// It knows the grammar of JSON. It does not know what the texts are for: request bodies and tokens are checked in the same way.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth is how deep objects and arrays may nest.
const MaxDepth = 32

// Errors of [Check]; a [DuplicateError] is the fourth.
var (
	ErrText   = errors.New("strictjson: the text is not Unicode: invalid UTF-8, or half of a surrogate pair")
	ErrSyntax = errors.New("strictjson: the text is not one JSON value")
	ErrDepth  = fmt.Errorf("strictjson: the text nests deeper than %d", MaxDepth)
)

// DuplicateError says which member is given twice.
type DuplicateError struct{ Name string }

// Error implements error.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("strictjson: the member %q is given twice", e.Name)
}

// container is an object or array that is open while the text is read.
type container struct {
	seen  map[string]bool // nil in an array
	named bool            // in an object: a name was read, its value comes next
}

// Check accepts exactly one JSON value of Unicode text, in which no object gives a member twice. (encoding/json reads other bytes, and
// halves of surrogate pairs, as U+FFFD: the text that is stored is then not the one that was sent.)
func Check(text []byte) error {
	if !utf8.Valid(text) || halvesPair(text) {
		return ErrText
	}
	var open []container
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	for done := false; !done; done = len(open) == 0 {
		token, err := decoder.Token()
		if err != nil {
			return ErrSyntax
		}
		if name, ok := token.(string); ok && len(open) > 0 && open[len(open)-1].wantsName() {
			if err := open[len(open)-1].take(name); err != nil {
				return err
			}
			continue
		}
		switch token {
		case json.Delim('{'):
			open = append(open, container{seen: map[string]bool{}})
		case json.Delim('['):
			open = append(open, container{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
			endValue(open)
		default:
			endValue(open)
		}
		if len(open) > MaxDepth {
			return ErrDepth
		}
	}
	if _, err := decoder.Token(); err != io.EOF {
		return ErrSyntax
	}
	return nil
}

// halvesPair reports whether an escape \uD800 to \uDFFF stands without its other half.
func halvesPair(text []byte) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++ // the sign that is escaped; it may be a backslash
		r := escaped(text, i)
		if !utf16.IsSurrogate(r) {
			continue
		}
		if i+5 >= len(text) || text[i+5] != '\\' || utf16.DecodeRune(r, escaped(text, i+6)) == unicode.ReplacementChar {
			return true
		}
		i += 10
	}
	return false
}

// escaped is the number behind the u at a place; 0 where there is none.
func escaped(text []byte, at int) rune {
	if at+5 > len(text) || text[at] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(text[at+1:at+5]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

func (c *container) wantsName() bool { return c.seen != nil && !c.named }

func (c *container) take(name string) error {
	if c.seen[name] {
		return &DuplicateError{Name: name}
	}
	c.seen[name], c.named = true, true
	return nil
}

// endValue notes that the innermost open container has got a value.
func endValue(open []container) {
	if len(open) > 0 {
		open[len(open)-1].named = false
	}
}
