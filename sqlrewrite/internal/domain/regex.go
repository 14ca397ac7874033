package domain

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"noisegate.example/sqlrewrite/internal/algebra"
)

// PostgreSQL compiles a pattern when it meets the first row, and can fail then, or take long on one text: that would be data. So only a
// subset of its regular expressions is taken, in which it can do neither: literals, classes, anchors, groups, alternatives, counted
// repetition. What is checked here means in PostgreSQL what it means everywhere. There are no back references and no look around, so that
// matching a text of n characters looks at each of them once, whatever the pattern.

// maxAtoms is how many characters or classes a pattern may stand for once its counted repetitions are written out, plain characters outside
// of groups apart. The engine remembers which of them it may stand at: the more there are, the more often a text can lead it to a set that
// it has not met before, which takes about a quarter of a microsecond each time (A32).
const maxAtoms = 30

// maxRange is how many characters a range in a class may span.
const maxRange = 1000

// classNames are the classes of characters that have a name, [[:name:]].
var classNames = []string{"alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit"}

// CheckRegex reports why a pattern is not in the subset.
func CheckRegex(pattern string) error {
	r := &regexReader{rest: []rune(pattern)}
	atoms, err := r.alternatives()
	switch {
	case err != nil:
		return err
	case len(r.rest) > 0: // a closing parenthesis
		return errors.New("a ) without its (")
	case atoms > maxAtoms:
		return fmt.Errorf("it stands for more than %d characters or classes", maxAtoms)
	default:
		return nil
	}
}

// regexReader reads a pattern from the left. Its methods give how many atoms what they read stands for.
type regexReader struct {
	rest  []rune
	depth int
	plain int // characters outside of groups that are themselves

	// Of what was read last: the most characters that it matches (see [regexReader.sequence]), and whether it matches at the start alone.
	length  int64
	atStart bool
	// groups are the places behind the ( of groups that remember what they match, counted from the end of the pattern.
	groups []int
}

// endless is the length of what matches any number of characters.
const endless = 1 << 30

const (
	maxRegexDepth   = 10
	maxRegexRepeats = maxAtoms
)

// next is the next character, 0 at the end.
func (r *regexReader) next() rune {
	if len(r.rest) == 0 {
		return 0
	}
	return r.rest[0]
}

// accept reads text if it comes next.
func (r *regexReader) accept(text string) bool {
	if strings.HasPrefix(string(r.rest), text) {
		r.rest = r.rest[len([]rune(text)):]
		return true
	}
	return false
}

func (r *regexReader) alternatives() (atoms int, err error) {
	if r.depth++; r.depth > maxRegexDepth {
		return 0, errors.New("its groups are nested too deeply")
	}
	longest, atStart := int64(0), true
	for {
		n, err := r.sequence()
		if atoms += n; err != nil {
			return 0, err
		}
		longest, atStart = max(longest, r.length), atStart && r.atStart
		if !r.accept("|") {
			r.depth--
			r.length, r.atStart = longest, atStart
			return atoms, nil
		}
	}
}

// sequence reads an alternative. The length of one outside of groups does not count what a repetition at its end adds: a text that has
// brought a match so far has matched.
func (r *regexReader) sequence() (atoms int, err error) {
	length, more, atStart := int64(0), int64(0), false
	for start := true; ; start = false {
		if c := r.next(); c == 0 || c == '|' || c == ')' {
			if start {
				return 0, errors.New("an alternative or group is empty")
			}
			if r.length, r.atStart = length, atStart; r.depth > 1 {
				r.length = min(length+more, endless)
			}
			return atoms, nil
		}
		anchor := r.next() == '^' || r.next() == '$'
		atStart = atStart || start && r.next() == '^'
		n, err := r.atom()
		if err != nil {
			return 0, err
		}
		times, counted, endlessly, err := r.quantifier()
		switch {
		case err != nil:
			return 0, err
		case counted && anchor:
			return 0, errors.New("an anchor cannot be repeated")
		}
		if c := r.next(); counted && (c == '*' || c == '+' || c == '?' || c == '{') {
			return 0, errors.New("one repetition follows another, or is not greedy")
		}
		if counted {
			n = max(n, 1)
		}
		length = min(length+more+r.length*int64(times), endless)
		if more = 0; endlessly {
			more = endless
		}
		if atoms += n * times; atoms > maxAtoms {
			return 0, fmt.Errorf("it stands for more than %d characters or classes", maxAtoms)
		}
	}
}

func (r *regexReader) atom() (atoms int, err error) {
	c := r.next()
	r.rest = r.rest[1:]
	r.length = int64(algebra.BoolIndex(c != '^' && c != '$'))
	switch c {
	case '(':
		if !r.accept("?:") {
			r.groups = append(r.groups, len(r.rest))
		}
		if r.next() == '?' {
			return 0, errors.New("of the groups that begin with (? only (?: is taken")
		}
		n, err := r.alternatives()
		if err == nil && !r.accept(")") {
			err = errors.New("a ( without its )")
		}
		return n, err
	case '[':
		return 1, r.class()
	case '\\':
		return 1, r.escape()
	case '*', '+', '?', '{', '}', ']':
		return 0, fmt.Errorf("%c has nothing to repeat or to close; write \\%c for the character", c, c)
	case '.':
		return 1, nil
	default: // ^ $ and characters that are themselves
		r.plain += algebra.BoolIndex(r.depth <= 1)
		return algebra.BoolIndex(r.depth > 1), nil
	}
}

// escape reads what follows a backslash: a class of characters, or one that is then itself.
func (r *regexReader) escape() error {
	c := r.next()
	if c == 0 {
		return errors.New("it ends with a backslash")
	}
	r.rest = r.rest[1:]
	if isAlphanumeric(c) && !strings.ContainsRune("dswDSW", c) {
		return fmt.Errorf(`the escape \%c is not taken`, c)
	}
	return nil
}

func isAlphanumeric(c rune) bool {
	return c > 127 || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// quantifier reads * + ? {m} {m,} {m,n}: how many copies of an atom it stands for, and whether more may follow.
func (r *regexReader) quantifier() (times int, counted, endlessly bool, err error) {
	switch {
	case r.accept("*"):
		return 1, true, true, nil
	case r.accept("?"):
		return 1, true, false, nil
	case r.accept("+"):
		return 2, true, true, nil
	case !r.accept("{"):
		return 1, false, false, nil
	}
	end := slices.Index(r.rest, '}')
	if end < 0 {
		return 0, false, false, errors.New("a { without its }")
	}
	least, most, span := strings.Cut(string(r.rest[:end]), ",")
	r.rest = r.rest[end+1:]
	m, err := strconv.ParseUint(least, 10, 16)
	n := m
	switch {
	case err == nil && span && most == "":
		n = m + 1
	case err == nil && span:
		n, err = strconv.ParseUint(most, 10, 16)
	}
	if err != nil || n < m || n < 1 || n > maxRegexRepeats {
		return 0, false, false, fmt.Errorf("a repetition is written {m}, {m,} or {m,n}, with numbers up to %d", maxRegexRepeats)
	}
	return int(n), true, span && most == "", nil
}

// class reads what follows [ up to its ].
func (r *regexReader) class() error {
	r.accept("^")
	for start := true; ; start = false {
		switch {
		case r.next() == 0:
			return errors.New("a [ without its ]")
		case !start && r.accept("]"):
			return nil
		case r.accept("[:"):
			name, _, closed := strings.Cut(string(r.rest), ":]")
			if !closed || !slices.Contains(classNames, name) {
				return errors.New("there is no such class of characters; [:alpha:] and [:digit:] are two that there are")
			}
			r.rest = r.rest[len([]rune(name))+2:]
			continue
		}
		from, single, err := r.member()
		if err != nil {
			return err
		}
		if len(r.rest) < 2 || r.rest[0] != '-' || r.rest[1] == ']' {
			continue
		}
		r.rest = r.rest[1:]
		to, alsoSingle, err := r.member()
		if err != nil {
			return err
		}
		if !single || !alsoSingle || to < from || to-from > maxRange {
			return errors.New("a range in a class goes from one character to a later one, not too far away")
		}
	}
}

// member reads a character of a class; single is false for a class within it.
func (r *regexReader) member() (c rune, single bool, err error) {
	c = r.next()
	if c == 0 || c == '[' || c == ']' || c == '-' && len(r.rest) > 1 && r.rest[1] != ']' {
		return 0, false, errors.New(`in a class, a backslash stands before the characters [ ] and -`)
	}
	r.rest = r.rest[1:]
	if c != '\\' {
		return c, true, nil
	}
	c = r.next()
	if strings.ContainsRune("DSW", c) {
		return 0, false, fmt.Errorf(`the escape \%c is not taken in a class`, c)
	}
	return c, !strings.ContainsRune("dsw", c), r.escape()
}

// SimilarRegex is a pattern of SIMILAR TO as the regular expression that PostgreSQL makes of it: % is any text, _ any character, and all
// else is as there, but for the characters that mean nothing to SIMILAR TO.
func SimilarRegex(pattern string) string {
	var b strings.Builder
	b.WriteString("^(?:")
	escaped, class := false, false
	for _, c := range pattern {
		switch {
		case escaped:
			escaped = false
			b.WriteByte('\\')
			b.WriteRune(c)
			continue
		case c == '\\':
			escaped = true
			continue
		case class:
		case c == '%':
			b.WriteString(".*")
			continue
		case c == '_':
			b.WriteByte('.')
			continue
		case c == '.' || c == '^' || c == '$':
			b.WriteByte('\\')
		}
		class = c == '[' || class && c != ']'
		b.WriteRune(c)
	}
	if escaped {
		b.WriteByte('\\') // refused later
	}
	b.WriteString(")$")
	return b.String()
}

// withoutMemory is a pattern of the subset whose groups do not remember what they match: only for such groups PostgreSQL divides a match
// again, by trial and error (regexec.c, cdissect).
func withoutMemory(pattern string) string {
	r := &regexReader{rest: []rune(pattern)}
	if _, err := r.alternatives(); err != nil {
		return pattern
	}
	var b strings.Builder
	for i, c := range []rune(pattern) {
		if slices.Contains(r.groups, len([]rune(pattern))-i) {
			b.WriteString("?:")
		}
		b.WriteRune(c)
	}
	return b.String()
}

// regexStates bounds the states of the machine that PostgreSQL makes of a pattern: characters and classes once its repetitions are written
// out, as [CheckRegex] counts them, where each plain character is one.
func regexStates(pattern Size) int64 {
	if pattern.Text == nil {
		return maxAtoms + pattern.Bytes
	}
	r := &regexReader{rest: []rune(*pattern.Text)}
	atoms, err := r.alternatives()
	if err != nil {
		atoms = maxAtoms
	}
	return int64(atoms+r.plain) + 2
}

// replacing counts the states that regexp_replace visits in a text of n characters (docs/sql/work.md, Lemma 19).
func replacing(n int64, pattern Size, everywhere bool) int64 {
	finds, tries := int64(1), n
	if everywhere {
		finds = n + 1
	}
	if pattern.Text != nil {
		r := &regexReader{rest: []rune(*pattern.Text)}
		if _, err := r.alternatives(); err == nil {
			tries = min(n, r.length)
			if r.atStart {
				finds, tries = min(finds, 2), 0
			}
		}
	}
	steps := multiplyCapped(n+1, tries+4)
	return addCapped(multiplyCapped(steps, regexStates(pattern)), multiplyCapped(finds, findsAgain+10*regexStates(pattern)))
}

// findsAgain is the number of visits for which PostgreSQL looks for the next place that matches: its machine starts anew.
const findsAgain = 200
