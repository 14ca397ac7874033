// Package draft writes policy files for people to finish: from the facts of a schema ([FromSchema]), and from the metadata
// of other systems ([Import]).
//
// It knows schemas and the policy file's format. It does not know rows or queries, nor anything that only a person can
// know: that is left blank.
package draft

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Blank is what a person fills in. A policy with a blank is refused where it stands.
const Blank = "___"

// Blanks counts those of a draft that must be filled in: not those of lines that are comments.
func Blanks(text string) (n int) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "# ")
		n += strings.Count(line, Blank)
	}
	return n
}

// SchemaFile is the file that the first line of a draft names for editors: what `noisegate schema policy` prints.
const SchemaFile = "noisegate-policy.schema.json"

// policy is a policy file as it is written.
type policy struct {
	head    []string // comment lines
	dataset string
	tables  []table
	left    []string // comment lines: what is not a table of the policy
	budgets []string
}

type table struct {
	name     string
	notes    []string // comment lines above it
	off      bool     // written as a comment
	public   bool
	settings []setting // unit, max_rows, ...
	columns  []setting
}

// setting is a key with its value, and why.
type setting struct {
	name, value, note string
	off               bool // written as a comment
}

// twoForCaps is a comment: a policy that wants two stewards is refused where the configuration does not name two.
var twoForCaps = []string{"Two stewards raise caps. Where the gateway's configuration names the keys of two, take out the #:",
	"stewards: {two_for: [cap]}"}

func (p policy) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# yaml-language-server: $schema=%s\n", SchemaFile)
	for _, line := range p.head {
		b.WriteString(strings.TrimRight("# "+line, " ") + "\n")
	}
	fmt.Fprintf(&b, "version: 1\ndataset: %s\nneighbours: add-remove\ntables:\n", p.dataset)
	for _, t := range p.tables {
		t.write(&b)
	}
	for _, line := range p.left {
		b.WriteString("  # " + line + "\n")
	}
	b.WriteString("budgets:\n")
	for _, line := range p.budgets {
		b.WriteString("  " + line + "\n")
	}
	for _, line := range twoForCaps {
		b.WriteString("# " + line + "\n")
	}
	return b.String()
}

func (t table) write(b *strings.Builder) {
	indent := "  "
	if t.off {
		indent = "  # "
	}
	for _, note := range t.notes {
		b.WriteString("  # " + note + "\n")
	}
	if t.public {
		b.WriteString(indent + scalar(t.name) + ": {public: true}\n")
		return
	}
	b.WriteString(indent + scalar(t.name) + ":\n")
	writeSettings(b, indent+"  ", t.settings)
	if len(t.columns) > 0 {
		mark := ""
		if !anyOn(t.columns) {
			mark = "# "
		}
		b.WriteString(indent + "  " + mark + "columns:\n")
		writeSettings(b, indent+"    ", t.columns)
	}
}

func anyOn(all []setting) bool {
	for _, s := range all {
		if !s.off {
			return true
		}
	}
	return false
}

// writeSettings aligns values and notes.
func writeSettings(b *strings.Builder, indent string, all []setting) {
	names, values := 0, 0
	const widest = 60 // a longer value pushes only its own note
	for _, s := range all {
		names = max(names, utf8.RuneCountInString(scalar(s.name)))
		if n := utf8.RuneCountInString(s.value); n <= widest {
			values = max(values, n)
		}
	}
	for _, s := range all {
		line := indent
		if s.off {
			line += "# "
		}
		line += pad(scalar(s.name)+":", names+1) + " " + s.value
		if s.note != "" {
			line = pad(line, utf8.RuneCountInString(indent)+names+2+values) + "  # " + s.note
		}
		b.WriteString(line + "\n")
	}
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-utf8.RuneCountInString(text), 0))
}

var plainScalar = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// scalar writes a text so that YAML reads that text.
func scalar(text string) string {
	switch strings.ToLower(text) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n", "":
	default:
		if plainScalar.MatchString(text) {
			return text
		}
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // texts always encode
	}
	return string(quoted)
}

// list writes keys of a domain; null is one of them where a value may be missing.
func list(values []string, nullable, quote bool) string {
	all := make([]string, 0, len(values)+1)
	for _, v := range values {
		if quote {
			v = scalar(v)
		}
		all = append(all, v)
	}
	if nullable {
		all = append(all, "null")
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// oneLine is a comment of a database as part of a line.
func oneLine(text string) string {
	const most = 80
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r == utf8.RuneError }), " ")
	if r := []rune(text); len(r) > most {
		text = string(r[:most-1]) + "…"
	}
	return text
}

// budgets are lines of a new policy: its amounts are promises, which only a person can make.
func newBudgets() []string {
	return []string{
		"# All analysts together: what people in the data are promised. rho 0.5 is about epsilon 6.5 at delta 1e-9 (page /docs/accounting).",
		"- {dataset: true, form: zcdp, rho: " + Blank + ", delta: 1e-6, min_epsilon: 0.01}",
		"# Each member of the group analysts; a question that names no price costs default_epsilon.",
		"- {group: analysts, per: analyst, form: zcdp, rho: " + Blank + ", delta: 1e-7, default_epsilon: 0.1, default_delta: 1e-9}",
	}
}
