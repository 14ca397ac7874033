// Package naming says which texts may name people and groups.
//
// It does not know who they are, nor what they may do.
package naming

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// most bounds names in bytes.
const most = 256

// Taken reports whether a text can be a group of a token: not empty, at most 256 bytes of UTF-8, no control characters. Groups carry caps,
// so that one that is left out is a cap that does not hold: this takes all that can be told apart in the ledger.
func Taken(name string) bool {
	return name != "" && len(name) <= most && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// Valid reports whether a text can name an account that is new: one that is [Taken], begins and ends with no white space, has nothing that
// cannot be seen (format characters such as a zero-width space, and what else Unicode lets a display leave out), and is its own NFKC form.
// Two names that look the same for another reason, such as a Cyrillic letter in a Latin word, are two names: to make one of them would
// give two people one account.
func Valid(name string) bool {
	return Taken(name) && strings.TrimSpace(name) == name && !strings.ContainsFunc(name, unseen) && norm.NFKC.IsNormalString(name)
}

// unseen reports whether a character formats others, or may be left out where text is shown.
func unseen(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
