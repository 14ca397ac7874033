package strictjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"noisegate.example/internal/strictjson"
)

func TestCheck(t *testing.T) {
	twice := func(name string) error { return &strictjson.DuplicateError{Name: name} }
	for text, want := range map[string]error{
		`{}`: nil, `[]`: nil, `1`: nil, `"a"`: nil, `null`: nil, ` {"a":1} `: nil,
		`{"a":"b","b":"a"}`:                        nil,
		`{"a":{"a":{"a":"a"}},"b":["a","a"]}`:      nil,
		`[{"a":1},{"a":2}]`:                        nil,
		`{"A":1,"a":2}`:                            nil, // JSON distinguishes case; who ignores case must look again
		`{"a":1,"a":1}`:                            twice("a"),
		`{"a":1,"\u0061":2}`:                       twice("a"),
		`{"a":[1,{"x":1}],"b":{"c":"d"},"a":null}`: twice("a"),
		`{"x":[{"b":1,"c":{"b":1},"b":2}]}`:        twice("b"),
		``:                                         strictjson.ErrSyntax,
		`{`:                                        strictjson.ErrSyntax,
		`{"a":1}}`:                                 strictjson.ErrSyntax,
		`{"a":1} x`:                                strictjson.ErrSyntax,
		`{} {}`:                                    strictjson.ErrSyntax,
		`{"a":NaN}`:                                strictjson.ErrSyntax,
		`{a:1}`:                                    strictjson.ErrSyntax,
		`[1,]`:                                     strictjson.ErrSyntax,
		"\"\xff\"":                                 strictjson.ErrText, "{\"\xc3\":1}": strictjson.ErrText,
		"\"\xed\xa0\x80\"": strictjson.ErrText,
		`"\ud800"`:         strictjson.ErrText, `"\udc00"`: strictjson.ErrText, `"\uD83D\uD83D"`: strictjson.ErrText, `{"\ud83dx":1}`: strictjson.ErrText,
		`"\ude00\ud83d"`: strictjson.ErrText, `"\ud83d\\ude00"`: strictjson.ErrText, `"\\\ud800"`: strictjson.ErrText,
		`"\ud83d\ude00"`: nil, `"\\ud800"`: nil, `"\u0041\\"`: nil, "\"\ufffd\"": nil, `"\ufffd"`: nil,
		strings.Repeat("[", 32) + strings.Repeat("]", 32): nil,
		strings.Repeat("[", 33) + strings.Repeat("]", 33): strictjson.ErrDepth,
		strings.Repeat("[", 60_000):                       strictjson.ErrDepth,
		strings.Repeat(`{"a":`, 10_000):                   strictjson.ErrDepth,
	} {
		err := strictjson.Check([]byte(text))
		if (err == nil) != (want == nil) || err != nil && err.Error() != want.Error() {
			t.Errorf("%.40s: got %v, want %v", text, err, want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(`{"a":[1,{"b":null}],"c":"d"}`)
	f.Add(`{"a":1,"a":2}`)
	f.Fuzz(func(t *testing.T, text string) {
		err := strictjson.Check([]byte(text))
		if valid := json.Valid([]byte(text)); err == nil && !valid {
			t.Errorf("accepted what is not JSON: %q", text)
		} else if valid && errors.Is(err, strictjson.ErrSyntax) {
			t.Errorf("refused JSON as not JSON: %q", text)
		}
		// A text that is accepted is read as it was sent: without the replacement of what is not Unicode.
		var read any
		if err == nil && json.Unmarshal([]byte(text), &read) == nil && !strings.Contains(strings.ToLower(text), `\ufffd`) &&
			!strings.ContainsRune(text, '\ufffd') && strings.ContainsRune(fmt.Sprint(read), '\ufffd') {
			t.Errorf("read as another text: %q", text)
		}
	})
}
