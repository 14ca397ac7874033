package archtest

import (
	"path"
	"regexp"
	"strings"
)

const glossaryPage = "docs/glossary.md"

// checkGlossary wants the terms in order, each once, and each in use where its line says that it is defined: under its name or,
// until all of them are renamed, an older one.
func checkGlossary(t *Tree) []Finding {
	if t.Texts[glossaryPage] == "" {
		return []Finding{{glossaryPage, "is missing"}}
	}
	row := regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$`)
	older := regexp.MustCompile(`\*([^*]+)\*`)
	var found []Finding
	last := ""
	for _, cells := range row.FindAllStringSubmatch(t.Texts[glossaryPage], -1) {
		term, meaning, see := cells[1], cells[2], cells[3]
		if term == "term" {
			continue // the heading
		}
		if strings.ToLower(term) <= last {
			found = append(found, Finding{glossaryPage, term + " is not in order"})
		}
		last = strings.ToLower(term)
		name, symbol, _ := strings.Cut(strings.TrimSuffix(last, ")"), " (")
		names := []string{name}
		if symbol != "" {
			names = append(names, symbol)
		}
		for _, match := range older.FindAllStringSubmatch(meaning, -1) {
			names = append(names, match[1])
		}
		if text := t.definedIn(see); !containsAny(strings.ToLower(text), names) {
			found = append(found, Finding{glossaryPage, term + " does not stand in " + see})
		}
	}
	return found
}

// definedIn is the text that a line of the glossary refers to: a page, or a package's files.
func (t *Tree) definedIn(see string) string {
	if _, link, ok := strings.Cut(see, "]("); ok {
		return t.Texts[path.Join(path.Dir(glossaryPage), strings.TrimSuffix(link, ")"))]
	}
	var text strings.Builder
	for _, f := range t.source() {
		if f.Dir == strings.Trim(see, "`") {
			text.WriteString(f.Text)
		}
	}
	return text.String()
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}
