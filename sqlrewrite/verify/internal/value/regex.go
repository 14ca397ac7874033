package value

import (
	"regexp"
	"strconv"
	"strings"
)

// compilable reports whether a pattern is of a subset of PostgreSQL's advanced regular expressions, all of which compile:
//
//	alternatives = branch {"|" branch}
//	branch       = {atom [quantifier] | "^" | "$"}
//	atom         = "(" ["?:"] alternatives ")" | class | "." | "\" (letter of dDwWsS | punctuation) | any other character
//	quantifier   = ("*" | "+" | "?" | "{" m ["," [n]] "}") ["?"]     with m <= n <= 100
//	class        = "[" ["^"] item {item} "]"
//	item         = "[:" name ":]" | "\" (letter of dws | punctuation) | character ["-" character], in order
//
// There are no back references, no constraints beyond ^ and $, and no embedded options. What repetition multiplies out to is at most 2,000
// characters, far below what PostgreSQL refuses as too complex.
func compilable(pattern string) bool {
	sizes := []int{1} // of the groups that are open, written out
	for pattern != "" {
		m := regexToken.FindStringSubmatch(pattern)
		if m == nil {
			return false
		}
		pattern = pattern[len(m[0]):]
		for _, r := range classItem.FindAllString(m[3], -1) {
			if r[0] != '[' && r[0] != '\\' && len(r) == 3 && r[1] == '-' && r[0] > r[2] {
				return false
			}
		}
		size, times := 1, 1
		if m[4] != "" { // "*", "+", "?" and "{m,n}"
			low, high, _ := strings.Cut(strings.Trim(m[5], "{}"), ",")
			least, _ := strconv.Atoi(low)
			most, err := strconv.Atoi(high)
			if err != nil {
				most = max(least, 1)
			}
			if times = most + 1; least > most {
				return false
			}
		}
		switch {
		case m[1] != "":
			sizes = append(sizes, 1)
			continue
		case m[2] == ")":
			size, sizes = sizes[len(sizes)-1], sizes[:len(sizes)-1]
		}
		if len(sizes) == 0 || len(sizes) > 20 {
			return false
		}
		if sizes[len(sizes)-1] += size * times; sizes[len(sizes)-1] > 2000 {
			return false
		}
	}
	return len(sizes) == 1
}

const (
	punctuation    = `!-/:-@\[-^\x60{-~`  // in a class
	classCharacter = `[ -,./0-Z_a-~\x60]` // ASCII without [ ] \ ^ and -
	classItems     = `\[:(?:alpha|digit|alnum|upper|lower|space|blank|punct|cntrl|graph|print|xdigit):\]|\\[dws` + punctuation + `]|` +
		classCharacter + `(?:-` + classCharacter + `)?|[^\x00-\x7f]`
	upTo100 = `0*(?:\d\d?|100)`
)

var (
	classItem  = regexp.MustCompile(classItems)
	regexToken = regexp.MustCompile(`^(?:(\((?:\?:)?)|[|^$]|(\)|(\[\^?(?:` + classItems + `)+\])|\\[dDwWsS` + punctuation + `]|` +
		`[^\x00-\x1f\\()|^$*+?{}\[\]])(([*+?]|\{` + upTo100 + `(?:,(?:` + upTo100 + `)?)?\})\??)?)`)
)
