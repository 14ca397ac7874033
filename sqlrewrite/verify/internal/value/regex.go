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

// anyLength is the length of what matches any number of characters.
const anyLength = 1 << 30

// branches are alternatives of a pattern or group while they are read: the characters of the last one at most, without what a repetition
// at its end adds, that, and the characters of the longest before it.
type branches struct{ length, tail, longest int64 }

func (b *branches) end(outermost bool) {
	if !outermost {
		b.length += b.tail
	}
	*b = branches{longest: max(b.longest, min(b.length, anyLength))}
}

// replaceable reports whether the matches of a compilable pattern can be found one after another: no group remembers what it matched, and
// no repetition is as short as can be. tried is the number of characters that a try can read which finds nothing, or beyond the end of its
// match: a repetition that ends an alternative only makes a match longer. It is 0 where all alternatives begin with ^, as all tries but the
// first then read nothing.
func replaceable(pattern string) (tried int64, ok bool) {
	open := []branches{{}}
	atStart, start := true, true
	for pattern != "" {
		m := regexToken.FindStringSubmatch(pattern)
		if m == nil || m[1] == "(" || m[4] != m[5] {
			return 0, false
		}
		pattern = pattern[len(m[0]):]
		last, size := len(open)-1, int64(1)
		atStart = atStart && (last > 0 || !start || m[0] == "^")
		start = last == 0 && m[0] == "|"
		switch {
		case m[1] != "":
			open = append(open, branches{})
			continue
		case m[0] == "|":
			open[last].end(last == 0)
			continue
		case m[0] == "^", m[0] == "$":
			size = 0
		case m[2] == ")":
			if last == 0 {
				return 0, false
			}
			open[last].end(false)
			open, last, size = open[:last], last-1, open[last].longest
		}
		b, times := &open[last], int64(1)
		b.length += b.tail
		switch b.tail = 0; {
		case m[5] == "*", m[5] == "+", strings.HasSuffix(m[5], ",}"):
			times, b.tail = repetitions(strings.Trim(m[5], "{}*+")), anyLength
		case m[5] != "" && m[5] != "?":
			times = repetitions(strings.Trim(m[5], "{}"))
		}
		b.length = min(b.length+size*times, anyLength)
	}
	open[0].end(true)
	if len(open) != 1 || start && !atStart {
		return 0, false
	}
	if atStart {
		return 0, true
	}
	return open[0].longest, true
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
