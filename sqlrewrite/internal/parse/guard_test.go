package parse

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// fullBomb repeats a shape up to the number of tokens that just passes the guard.
func fullBomb(t *testing.T, shape func(n int) string) string {
	t.Helper()
	low, high := 1, MaxBytes // low passes, high does not
	for low+1 < high {
		n := (low + high) / 2
		if text := shape(n); checkText(text, analystLimits()) == nil && fault.CodeOf(countTokens(text, maxTokens)) != fault.CodeTooComplex {
			low = n
		} else {
			high = n
		}
	}
	return shape(low)
}

func parseTime(text string, dialect Dialect) (took time.Duration, err error) {
	took = parsetest.Fastest(func() { _, err = Parse(text, dialect) })
	return took, err
}

// The largest bombs that pass the guard, between harmless queries, on threads with a stack of 2 MiB: a quarter of what Linux gives by
// default (1.5 MiB were enough when measured, 1 MiB not). A parser that overflows its stack kills the process, so a process of its own runs
// them.
//
// covers: A45
func TestSmallStack(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	const child = "NOISEGATE_TEST_A45"
	if os.Getenv(child) != "" {
		for name, shape := range parsetest.Bombs {
			if _, err := Parse(fullBomb(t, shape), DialectPostgres); fault.CodeOf(err) == fault.CodeInternal {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := Parse(parsetest.Harmless, DialectPostgres); err != nil {
				t.Fatalf("after %s: %v", name, err)
			}
		}
		fmt.Println("survived")
		return
	}
	cmd := exec.Command("/bin/sh", "-c", `ulimit -s 2048 && exec "$0" -test.run='^TestSmallStack$'`, os.Args[0])
	cmd.Env = append(os.Environ(), child+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("survived")) {
		t.Fatalf("the parser does not survive: %v\n%.2000s", err, out)
	}
}

// covers: A45
func TestBombsAndHarmlessAlternate(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	texts := make([]string, 0, len(parsetest.Bombs))
	for _, shape := range parsetest.Bombs {
		texts = append(texts, parsetest.Bomb(shape, 3<<10))
	}
	for i := range 1000 {
		_, _ = Parse(texts[i%len(texts)], DialectPostgres) // its own test looks at the outcome
		if _, err := Parse(parsetest.Harmless, DialectPostgres); err != nil {
			t.Fatalf("after %.40q: %v", texts[i%len(texts)], err)
		}
	}
}

func TestLimitsAreExact(t *testing.T) {
	tokens := func(n int) string { return "SELECT 1" + strings.Repeat(", 100", (n-2)/2) }
	inList := func(n int) string { return "SELECT 1 WHERE a IN (1" + strings.Repeat(", 1", n-1) + ")" }
	joins := func(n int) string { return "SELECT 1 FROM t" + strings.Repeat(" CROSS JOIN t", n) }
	commas := func(n int) string { return "SELECT 1 FROM t" + strings.Repeat(", t", n) }
	depth := func(n int) string { return "SELECT " + strings.Repeat("f(", n-1) + "1" + strings.Repeat(")", n-1) }
	digits := func(n int) string { return "SELECT " + strings.Repeat("7", n) }
	exponent := func(n int) string { return fmt.Sprintf("SELECT 1e%d, 1e-%d", n, n) }
	bytes := func(n int) string { return "SELECT 1" + strings.Repeat(" ", n-8) }
	for name, c := range map[string]struct {
		text  func(n int) string
		limit int
		step  int
	}{
		"tokens": {tokens, maxTokens, 2}, "in list": {inList, maxInList, 1}, "joins": {joins, maxJoins, 1}, "commas": {commas, maxJoins, 1},
		"depth": {depth, maxDepth, 1}, "digits": {digits, maxDigits, 1}, "exponent": {exponent, maxDigits, 1}, "bytes": {bytes, MaxBytes, 1},
	} {
		if _, err := Parse(c.text(c.limit), DialectPostgres); err != nil {
			t.Errorf("%s: at the limit: %v", name, err)
		}
		if _, err := Parse(c.text(c.limit+c.step), DialectPostgres); fault.CodeOf(err) != fault.CodeTooComplex {
			t.Errorf("%s: beyond the limit: got %v, want too-complex", name, err)
		}
	}
}

func TestPosition(t *testing.T) {
	text := "ab\nçd\n\nx"
	for _, c := range []struct {
		at   syntax.Pos
		want fault.Position
	}{
		{0, fault.Position{Line: 1, Column: 1}}, {2, fault.Position{Line: 1, Column: 3}}, {3, fault.Position{Line: 2, Column: 1}},
		{5, fault.Position{Line: 2, Column: 2}}, {7, fault.Position{Line: 3, Column: 1}}, {8, fault.Position{Line: 4, Column: 1}},
		{9, fault.Position{Line: 4, Column: 2}}, {10, fault.Position{}}, {-1, fault.Position{}},
	} {
		if got := scalar.Position(text, c.at); got != c.want {
			t.Errorf("position %d: got %v, want %v", c.at, got, c.want)
		}
	}
	for characters, want := range map[int]syntax.Pos{0: 0, 3: 3, 4: 5, 7: 8, 8: 9, 100: 9} {
		if got := scalar.ByteOffset(text, characters); got != want {
			t.Errorf("character %d: got byte %d, want %d", characters, got, want)
		}
	}
}

// A50: what no parser should see, and what PostgreSQL would read otherwise than a person.
//
// covers: A50
func TestBytesAreRefused(t *testing.T) {
	for _, text := range []string{
		"SELECT 1\x00; DROP TABLE people", "\x00", "SELECT '\xff'", "SELECT 'a\xc3'", "\xed\xa0\x80", "SELECT \"\xf8\"", "\xfe\xff",
	} {
		_, err := Parse(text, DialectPostgres)
		if fault.CodeOf(err) != fault.CodeSyntax {
			t.Errorf("%q: got %v, want sql/syntax", text, err)
		}
	}
	if _, err := Parse("SELECT count(*) FROM t WHERE a = '\uFFFD'", DialectPostgres); err != nil {
		t.Errorf("a replacement character written as such: %v", err)
	}
}
