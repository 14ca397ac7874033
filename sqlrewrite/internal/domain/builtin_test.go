package domain

import (
	"flag"
	"os"
	"strings"
	"testing"
)

// Every name means one function, and every function of a row is typed and has an error-free form; mod becomes the operator and
// date the cast, which have one.
func TestBuiltins(t *testing.T) {
	known := make(map[string]bool)
	for _, f := range Builtins {
		if known[f.Name] {
			t.Errorf("%s stands twice in the table", f.Name)
		}
		known[f.Name] = true
		if rows := f.Kind == RowFunction; rows != (f.Type != nil) || rows != (f.Args.most > 0) || rows && f.Safe == nil &&
			f.Name != "mod" && f.Name != "date" {
			t.Errorf("%s lacks what a function of a row has, or has what others lack", f.Name)
		}
		if aggregate := f.Kind == Aggregate; aggregate && f.Form == NoForm || f.Kind == RefusedAggregate && f.Hint == "" {
			t.Errorf("%s lacks its form or its hint", f.Name)
		}
		if f.IsRank() != (f.Window != windowForm{}) {
			t.Errorf("%s is a window function or has a window's form, not both", f.Name)
		}
		if of := BuiltinOf(f.Name); of == nil || of.Name != f.Name {
			t.Errorf("%s is not found by its name", f.Name)
		}
	}
}

// The page's list of functions is the table of functions; -rewrite writes it.
func TestCoverageListsTheFunctions(t *testing.T) {
	const page, heading = "../../../docs/sql-coverage.md", "## Functions\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := strings.Cut(string(text), heading)
	listed, rest, closed := strings.Cut(after, "\n## ")
	if !found || !closed {
		t.Fatalf("%s has no section %q", page, heading)
	}
	want := functionList()
	if listed == want {
		return
	}
	if flag.Lookup("rewrite").Value.String() != "true" { // datadriven's
		t.Fatalf("%s lists other functions than there are; make golden writes\n%s", page, want)
	}
	if err := os.WriteFile(page, []byte(before+heading+want+"\n## "+rest), 0o600); err != nil {
		t.Fatal(err)
	}
}

// functionList is the table of functions in words.
func functionList() string {
	kinds := []struct {
		text string
		is   func(f Builtin) bool
	}{
		{"Aggregates that are released with noise", func(f Builtin) bool { return f.Kind == Aggregate }},
		{"Aggregates in a query for each unit, and with OVER among its rows", func(f Builtin) bool { return f.OfUnit }},
		{"Aggregates of released values and public rows alone", func(f Builtin) bool {
			return f.Kind == RefusedAggregate && f.IsExact()
		}},
		{"Aggregates that are always refused", func(f Builtin) bool { return f.Kind == RefusedAggregate && !f.IsExact() }},
		{"Functions of a row, and of released values and keys", func(f Builtin) bool { return f.Kind == RowFunction }},
		{"Of these, after the noise with an interval", func(f Builtin) bool { return f.Interval != nil }},
		{"Functions with OVER only", func(f Builtin) bool { return f.Kind == WindowFunction }},
	}
	var out strings.Builder
	for _, kind := range kinds {
		var names []string
		for _, f := range Builtins {
			if kind.is(f) {
				names = append(names, "`"+f.Name+"`")
			}
		}
		line := "* " + kind.text + ":"
		for i, name := range names {
			if i < len(names)-1 {
				name += ","
			}
			if len(line)+1+len(name) > 120 {
				out.WriteString("\n" + line)
				line = " "
			}
			line += " " + name
		}
		out.WriteString("\n" + line + ".")
	}
	return out.String() + "\n"
}
