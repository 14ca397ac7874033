package archtest

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

const sqlPages = "docs/sql/"

// pages are the Markdown files below a folder, in order.
func (t *Tree) pages(dir string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(t.Texts)), func(name string) bool {
		return !strings.HasPrefix(name, dir) || path.Ext(name) != ".md"
	})
}

// checkTables wants each row of a table in one line, with as many cells as the table's header: what a line is broken into is none.
func checkTables(t *Tree) []Finding {
	rule, code := regexp.MustCompile(`^\|(\s*:?-+:?\s*\|)+$`), regexp.MustCompile("`[^`]*`|\\\\\\|")
	cells := func(line string) int {
		return strings.Count(code.ReplaceAllString(strings.TrimSuffix(line, "|"), ""), "|")
	}
	var found []Finding
	for _, page := range t.pages("") {
		lines, head := strings.Split(t.Texts[page], "\n"), 0
		for i, line := range lines {
			switch {
			case i > 0 && rule.MatchString(line):
				head = cells(lines[i-1])
			case line == "" || strings.HasPrefix(line, "<!--"):
				head = 0
			case head > 0 && (!strings.HasPrefix(line, "|") || cells(line) != head):
				found = append(found, Finding{fmt.Sprintf("%s:%d", page, i+1), "is no row of its table"})
			}
		}
	}
	return found
}

// checkLemmas wants each section of the pages of SQL to have one lemma at most, under a unique number. Such a section begins with the files
// of its rule, and with the files of verify or the tests that check it.
func checkLemmas(t *Tree) []Finding {
	lemma := regexp.MustCompile(`\*\*Lemma\s+(\w+)\.\*\*`)
	rule := regexp.MustCompile(`(?s)\nRule: (.+?)\n\n`)
	named := regexp.MustCompile("`([^`]+)`")
	tests := testNames(t)
	first := map[string]string{} // where each lemma stands
	var found []Finding
	for _, page := range t.pages(sqlPages) {
		for _, section := range strings.Split(t.Texts[page], "\n## ") {
			lemmas := lemma.FindAllStringSubmatch(section, -1)
			if len(lemmas) == 0 {
				continue
			}
			heading, _, _ := strings.Cut(strings.TrimPrefix(section, "## "), "\n")
			add := func(format string, args ...any) {
				found = append(found, Finding{page, heading + " " + fmt.Sprintf(format, args...)})
			}
			if len(lemmas) > 1 {
				add("has %d lemmas, want 1", len(lemmas))
			}
			for _, m := range lemmas {
				if other := first[m[1]]; other != "" {
					add("has Lemma %s, as %s has", m[1], other)
				}
				first[m[1]] = page + ": " + heading
			}
			made, checked := false, false
			if m := rule.FindStringSubmatch(section); m != nil {
				for _, name := range named.FindAllStringSubmatch(m[1], -1) {
					_, isTest := tests[name[1]]
					if !isTest && !t.hasFile(name[1]) {
						add("names %s, which does not exist", name[1])
					}
					made = made || strings.HasPrefix(name[1], "sqlrewrite/internal/")
					checked = checked || isTest || strings.HasPrefix(name[1], "sqlrewrite/verify/")
				}
			}
			if !made || !checked {
				add(`does not name the file of its rule and what checks it ("Rule: ...; verified by ...")`)
			}
		}
	}
	return found
}

// hasFile reports whether the tree has a Go file at a path.
func (t *Tree) hasFile(name string) bool {
	return slices.ContainsFunc(t.Files, func(f *File) bool { return f.Path == name })
}

// checkLinks wants each link from one page to another to lead to a page, and to a heading of it.
func checkLinks(t *Tree) []Finding {
	link := regexp.MustCompile(`\]\(([^)\s:]*\.md)?(?:#([^)\s]+))?\)`)
	var found []Finding
	for _, page := range t.pages("") {
		for _, m := range link.FindAllStringSubmatch(t.Texts[page], -1) {
			to := page
			if m[1] != "" {
				to = path.Join(path.Dir(page), m[1])
			}
			switch text, ok := t.Texts[to]; {
			case !ok:
				found = append(found, Finding{page, "links " + to + ", which does not exist"})
			case m[2] != "" && !slices.Contains(anchors(text), m[2]):
				found = append(found, Finding{page, "links #" + m[2] + " of " + to + ", which has no such heading"})
			}
		}
	}
	return found
}

// anchors are the names by which the headings of a page are linked.
func anchors(page string) []string {
	heading := regexp.MustCompile(`(?m)^#+ (.+)$`)
	dropped := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	var names []string
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		names = append(names, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return names
}

const indexPage = "docs/README.md"

// checkIndex wants every page of docs, but for decisions, which have their own list, in the index.
func checkIndex(t *Tree) []Finding {
	var found []Finding
	for _, page := range t.pages("docs/") {
		link := "](" + strings.TrimPrefix(page, "docs/") + ")"
		if page != indexPage && !strings.HasPrefix(page, "docs/decisions/") && !strings.Contains(t.Texts[indexPage], link) {
			found = append(found, Finding{page, "is not in " + indexPage})
		}
	}
	return found
}
