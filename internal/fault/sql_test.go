package fault

import (
	"strings"
	"testing"
)

func TestUnknownSuggests(t *testing.T) {
	columns := []string{"age", "sex", "hours_per_week", "marital_status", "Ünit"}
	const others = "known columns: age, hours_per_week, marital_status, sex, Ünit"
	for _, c := range []struct{ name, hint string }{
		{"agee", `did you mean "age"?`},
		{"AGE", `did you mean "age"?`},
		{"aeg", `did you mean "age"?`},
		{"hours_per_weak", `did you mean "hours_per_week"?`},
		{"marital", others},
		{"ünit", `did you mean "Ünit"?`},
		{"x", others},
		{"", others},
		{strings.Repeat("a", 1<<20), others},
	} {
		if got := UnknownColumn(Position{}, c.name, columns); got.Hint != c.hint {
			t.Errorf("hint for %.20q: got %q, want %q", c.name, got.Hint, c.hint)
		}
	}
}

func TestNearestIsSymmetricInTies(t *testing.T) {
	for _, known := range [][]string{{"bat", "cat"}, {"cat", "bat"}} {
		if got, ok := Nearest("aat", known); !ok || got != "bat" {
			t.Errorf("Nearest(aat, %v) = %q, %v; want the first in the alphabet", known, got, ok)
		}
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"ca", "abc", 3}, {"naïve", "naive", 1}} {
		if got := editDistance([]rune(c.a), []rune(c.b)); got != c.want {
			t.Errorf("editDistance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// A client's text comes back on one line, printable and short, whatever it was.
func TestMessagesAreCleaned(t *testing.T) {
	hostile := "a\x1b[31m\n\u202e\x00" + strings.Repeat("x", 1000)
	for _, e := range []*Error{
		Syntax(Position{}, hostile), Unsupported(Position{}, hostile, ""), UnknownTable(Position{}, hostile, nil),
		UnknownColumn(Position{}, hostile, nil), UnknownFunction(Position{}, hostile, nil),
		AmbiguousColumn(Position{}, hostile, nil), TypeMismatch(Position{}, hostile, ""),
	} {
		if len(e.Msg) > 1100 || strings.ContainsAny(e.Msg, "\n\x1b\x00\u202e") {
			t.Errorf("%s: message is not clean: %q", e.Code, e.Msg)
		}
	}
}
