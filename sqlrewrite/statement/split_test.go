package statement

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cockroachdb/datadriven"
	pg "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/internal/parsetest"
)

// demo are the names of `noisegate demo`.
func demo() Names {
	return Names{
		Database:   "census",
		Exposed:    []TableName{{"public", "people"}, {"public", "visits"}, {"public", "regions"}, {"other", "people"}, {"public", "pg_lists"}},
		SearchPath: []string{"$user", "public"},
	}
}

// show writes what a message was split into, one field a line.
func show(all []Statement, err error) string {
	var b strings.Builder
	if err != nil {
		showRefusal(&b, err)
	}
	for i, s := range all {
		if i > 0 {
			b.WriteString("----\n")
		}
		fmt.Fprintf(&b, "%v at %d: %s\n", s.Kind, s.Offset, s.Text)
		if s.Parameters > 0 {
			fmt.Fprintf(&b, "parameters: %d\n", s.Parameters)
		}
		for _, e := range s.Ends {
			fmt.Fprintf(&b, "end: %+v\n", e)
		}
		switch s.Kind {
		case Session:
			text := strings.NewReplacer("Command:<nil> Refusal:<nil> ", "", " Ends:[]", "").Replace(fmt.Sprintf("%+v", s.Command))
			fmt.Fprintf(&b, "%T%s\n", s.Command, text)
		case Refused:
			showRefusal(&b, s.Refusal)
		default:
		}
	}
	return b.String()
}

func showRefusal(b *strings.Builder, err error) {
	var r *Refusal
	if !errors.As(err, &r) {
		fmt.Fprintf(b, "not a refusal: %v\n", err)
		return
	}
	fmt.Fprintf(b, "%s at %d: %s\n", r.SQLState, r.Position, r.Message)
	if r.Hint != "" {
		fmt.Fprintf(b, "hint: %s\n", r.Hint)
	}
}

// TestSplitGolden reads testdata/split: messages, with what each of their statements is. -rewrite fills it in.
func TestSplitGolden(t *testing.T) {
	datadriven.RunTest(t, "testdata/split", func(t *testing.T, d *datadriven.TestData) string {
		names := demo()
		d.MaybeScanArgs(t, "path", &names.SearchPath)
		if d.HasArg("path") {
			for _, arg := range d.CmdArgs {
				names.SearchPath = arg.Vals
			}
		}
		return show(Split(d.Input, names))
	})
}

// TestOffsets: the text of a statement stands in the message where its offset says, and the position of a refusal is a character's of the
// message, not a byte's of the statement.
func TestOffsets(t *testing.T) {
	message := "  SELECT 'ä€𝄞' ; /* ö */ SELECT * FROM people, pg_class; BEGIN;"
	all, err := Split(message, demo())
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	for _, s := range all {
		if at := []rune(message)[s.Offset:]; !strings.HasPrefix(string(at), s.Text) {
			t.Errorf("offset %d: %q does not begin with %q", s.Offset, string(at), s.Text)
		}
	}
	if at := string([]rune(message)[all[1].Refusal.Position-1:]); !strings.HasPrefix(at, "pg_class") {
		t.Errorf("position %d stands before %q", all[1].Refusal.Position, at)
	}
}

// TestSyntaxPosition: an error of the grammar is placed by characters, over several lines.
func TestSyntaxPosition(t *testing.T) {
	message := "SELECT 'ä',\n  'ö' FRON x"
	_, err := Split(message, demo())
	var r *Refusal
	if !errors.As(err, &r) || r.SQLState != "42601" {
		t.Fatal(err)
	}
	if at := string([]rune(message)[r.Position-1:]); at != "x" {
		t.Errorf("position %d stands before %q: %v", r.Position, at, r)
	}
}

// TestLimits: each limit of a message, at it and one above.
func TestLimits(t *testing.T) {
	repeat := func(head, each string, n int) string { return head + strings.Repeat(each, n) }
	for name, c := range map[string]struct {
		passes, fails string
		state         string
	}{
		"statements": {repeat("", "BEGIN;", maxStatements), repeat("", "BEGIN;", maxStatements+1), "54000"},
		"bytes":      {repeat("SELECT '", "a", MaxBytes-9) + "'", repeat("SELECT '", "a", MaxBytes-8) + "'", "0A000"},
		"tokens":     {repeat("SELECT 1", ",1", (maxTokens-2)/2), repeat("SELECT 1", ",1", maxTokens/2), "0A000"},
		"depth":      {repeat("SELECT 1", "+1", maxDepth/2-5), repeat("SELECT 1", "+1", maxDepth/2+1), "0A000"},
		"parameters": {"SELECT $65535", "SELECT $65536", "42P02"},
	} {
		t.Run(name, func(t *testing.T) {
			if all, err := Split(c.passes, demo()); err != nil || all[0].Refusal != nil {
				t.Errorf("at the limit: %v, %v", err, all[0].Refusal)
			}
			all, err := Split(c.fails, demo())
			if err == nil {
				if all[0].Refusal == nil {
					t.Fatal("above the limit: accepted")
				}
				err = all[0].Refusal
			}
			var r *Refusal
			if !errors.As(err, &r) || r.SQLState != c.state {
				t.Errorf("above the limit: %v, want %s", err, c.state)
			}
		})
	}
}

// TestDeepMessages: the deepest forms that the limits let pass, on threads with the stack that Linux gives by default. A parser that
// overflows its stack ends the process, so a process of its own runs them.
//
// covers: A45
func TestDeepMessages(t *testing.T) {
	const child = "NOISEGATE_TEST_DEEP_MESSAGES"
	if os.Getenv(child) != "" {
		for name, shape := range parsetest.Bombs {
			tokens := func(n int) int {
				scan, err := pg.Scan(shape(n))
				if err != nil {
					return n // text that ends too soon
				}
				return len(scan.Tokens)
			}
			each, few := (tokens(200)-tokens(100))/100, tokens(100)
			low := min(100+(maxTokens-few)/max(each, 1), MaxBytes*100/len(shape(100)))
			if _, err := Split(shape(low), demo()); err != nil && strings.Contains(err.Error(), "internal") {
				t.Errorf("%s of %d: %v", name, low, err)
			}
			for _, n := range []int{50, 100, 190, 380} { // as deep as a tree that is printed may be
				if all, err := Split(shape(n), demo()); err == nil && all[0].Kind == Catalog {
					if _, err := Rewrite(all[0], demoView()); err != nil && strings.Contains(err.Error(), "internal") {
						t.Errorf("%s of %d: %v", name, n, err)
					}
				}
			}
			if all, err := Split(parsetest.Harmless, demo()); err != nil || all[0].Kind == Refused {
				t.Fatalf("after %s of %d: %v", name, low, err)
			}
		}
		fmt.Println("survived")
		return
	}
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	cmd := exec.Command("/bin/sh", "-c", `ulimit -s 8192 && exec "$0" -test.run='^TestDeepMessages$'`, os.Args[0])
	cmd.Env = append(os.Environ(), child+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "survived") {
		t.Fatalf("the parser does not survive: %v\n%.2000s", err, out)
	}
}

// FuzzSplit: no message makes a panic or an internal error; statements stand where their offsets say; what names an exposed table without
// WITH is never a catalog query.
func FuzzSplit(f *testing.F) {
	for _, text := range []string{"", ";", "BEGIN; SELECT 1", "COPY (SELECT 1) TO STDOUT WITH (FORMAT csv)", "EXPLAIN (FORMAT json) SELECT 1",
		"DECLARE c CURSOR FOR SELECT 1", "PREPARE p (int) AS SELECT $1", "SELECT pg_cancel_backend(1)", "SET a TO 1, 2",
		"WITH RECURSIVE a AS (SELECT 1) SELECT * FROM a, people",
		"SELECT noise_interval_low(n), /* , */ count(*) AS n, dp_interval_high(count(*)) \"b\" FROM people ORDER BY 2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, message string) {
		all, err := Split(message, demo())
		var r *Refusal
		if err != nil && (!errors.As(err, &r) || r.SQLState == stateInternal) {
			t.Fatal(err)
		}
		for _, s := range all {
			if s.Refusal != nil && (s.Refusal.SQLState == stateInternal || s.Refusal.Position > utf8.RuneCountInString(message)+1) {
				t.Fatal(s.Refusal)
			}
			rest := string([]rune(message)[s.Offset:])
			switch again, err := Split(s.Text, demo()); {
			case len(s.Ends) == 0 && !strings.HasPrefix(rest, s.Text):
				t.Fatalf("%q is not at %d", s.Text, s.Offset)
			case len(s.Ends) > 0 && (err != nil || len(again) != 1 || again[0].Kind != Data || len(again[0].Ends) > 0 ||
				utf8.RuneCountInString(s.Text) > utf8.RuneCountInString(rest)):
				t.Fatalf("%q is asked for %q: %+v, %v", s.Text, message, again, err)
			}
		}
	})
}
