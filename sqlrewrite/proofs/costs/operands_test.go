package costs

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// many is a text so many times.
func many(v string, n int) string { return strings.Repeat(v, max(n, 0)) }

// fields are those of times.
var fields = strings.Fields(
	"year month day hour minute second epoch week isoyear quarter dow isodow doy decade century millennium")

// starts are constants that are bad for some algorithm: one letter, short periods, almost matching, half as long, letters of four bytes.
func starts(h hole, z size) []string {
	n, d := z.characters, z.digits
	switch h {
	case textHole:
		return []string{many("a", n/2) + "b", "b" + many("a", n/2), "ab", many("a", n-1), many("ab", n/4) + "b", many("𐐨", n/2) + "𐐩", "9"}
	case patternHole:
		k := min(n, longestPattern)
		return []string{"%" + many("a", k) + "b%", "%" + many("a", k/2) + "b%", "%" + many("_", k) + "b%", "%a_" + many("a", k/2) + "b%",
			"%" + many("a%", min(7, k/8)) + "b", "%" + many("ab", k/4) + "b%", "%" + many("𐐨", k/5) + "𐐩%", "%smith%",
			"%" + many("_a", k/2) + "b%"}
	case regexHole:
		return []string{"a+b", "(a|b)*a(a|b){11}c", "(a|b)*a[ab]{12}b[ab]{12}c", "a{1,14}b", "(a|b|c|d){1,3}[e-z]+(x|y).*(x|z)+zz$",
			"[[:alpha:]]+b", "(a*b?){10}c", ".*.*.*b", "(𐐨|a){10}b", "[^0-9]", "a*", "a[^c]*c|b", "(a|b)*a(a|b){9}c|[ab]"}
	case setHole:
		return []string{"bcdefghija", "bcdefgh ", "𐐪𐐨", "a", "ab"}
	case fieldHole:
		return fields
	case templateHole:
		return []string{"IW", many("IW", min(n/2, 100)), many("Month", min(n/5, 40)), many("DDD", min(n/3, 60)), many("x", n)}
	case numberHole:
		return []string{"7.5", "7", many("9", d/2), "3." + many("3", d-1), "1" + many("0", d/2), "0." + many("0", d/2) + "7"}
	case placeHole:
		return []string{"2", "1", "10", "0", "-1", "-3", "40", strconv.Itoa(n), strconv.Itoa(n / 2), strconv.Itoa(-n / 2)}
	case spanHole:
		return []string{"1 month 2 days 3 hours", "12 days", "7 hours 5 minutes 3.456789 seconds"}
	case listHole:
		return lists(z)
	default:
		panic("a constant of no kind")
	}
}

// longestPattern is how many bytes a pattern of LIKE has at most, but for the rest of a mutation.
const longestPattern = 190

// lists are those of IN, by type.
func lists(z size) []string {
	of := func(item func(i int) string) string {
		all := make([]string, z.items)
		for i := range all {
			all[i] = item(i)
		}
		return strings.Join(all, ", ")
	}
	return []string{
		of(func(i int) string { return strconv.Itoa(i + 7) }),
		of(func(i int) string { return "'" + many("a", min(z.characters, 200)-5) + strconv.Itoa(i+1000) + "'" }),
		of(func(i int) string { return many("9", z.digits-1) + "." + strconv.Itoa(i+100) }),
		of(func(i int) string { return fmt.Sprintf("'9d5b1e0c-0000-4000-8000-%012d'", i) }),
		"'a', 'bb'", "true", "'2022-01-01', '2022-01-02'", "INTERVAL '1 day', INTERVAL '2 days'",
	}
}

// columnStarts are values of a column of so many characters or digits. Those at one place of the lists of several columns belong together.
func columnStarts(name string, z size) []string {
	n, d := z.characters, z.digits
	switch name {
	case "k", "l":
		return []string{many("a", 5*n), many("ab", 5*n/2), many("𐐨", 5*n/4), many("a", 5*n-1) + "b", many(" ", 5*n-1) + "a"}
	case "t":
		return []string{mixed(n), many("a", n), many("ab", n/2), many("𐐨", n), many("a", n-1) + "b", many("İ", n), many(" ", n-1) + "a",
			many("ΐ", n), many("9", n), many("a ", n/2), many("a", n)}
	case "u":
		return []string{mixed(n), many("a", n/2) + "b", many("ab", n/4) + "b", many("𐐨", n-1) + "𐐩", many("a", n-1) + "c", many("İ", n-1) + "b",
			many(" ", n-1) + "b", many("ΐ", n-1) + "b", many("9", n-1) + "8", "a", "b" + many("a", n/2)}
	case "n":
		return []string{many("9", d), many("9", d), many("9", d), "7", many("9", d-1), "1" + many("0", d-1), many("3", d), many("1", d)}
	case "m":
		return []string{many("9", d-1), many("9", d/2), "7", many("9", d), many("9", d-1) + "8", many("3", d/2), many("7", d/2),
			many("9", d/4) + "1"}
	case "q":
		return []string{"0." + many("9", d), "0." + many("9", d/2), "0." + many("0", d-1) + "7", "0.7", "0." + many("0", d/2) + many("9", d/2)}
	case "r":
		return []string{many("9", d-d/2) + "." + many("9", d/2), "7." + many("9", d/2), many("9", d-d/2), "0." + many("0", d/2-1) + "7",
			many("9", d/4) + "." + many("9", d/2)}
	default:
		return fixedStarts[name]
	}
}

// fixedStarts are values of columns whose size is always the same.
var fixedStarts = map[string][]string{
	"f": {"0.7", "1e99", "-1e-25", "123456789.123456789", "7e30"},
	"g": {"0.3", "3e38", "-1e-25", "1234567.9", "7"},
	"i": {"4611686018427387904", "7", "-9223372036854775808", "9223372036854775807"},
	"j": {"999", "7", "-1000", "2147483647"},
	"h": {"32767", "7", "-3"},
	"b": {"true"},
	"d": {"2024-02-29", "1900-01-01", "9999-12-31"},
	"a": {"2024-02-29 12:34:56.789", "1900-01-01", "9999-12-31 23:59:59.999999"},
	"c": {"2024-02-29 12:34:56.788", "2100-12-31", "0001-01-01"},
	"z": {"2024-02-29 12:34:56.789+00", "1900-01-01 00:00:00+00", "9999-12-31 00:00:00+00"},
	"e": {"a", "bb"},
	"x": {"9d5b1e0c-0000-4000-8000-000000000001"},
	"y": {"9d5b1e0c-0000-4000-8000-000000000002"},
}

// mixed is a text of two letters that leads a regular expression to as many sets of states as any.
func mixed(n int) string {
	r := rand.New(rand.NewPCG(3, 4)) // the same each time
	b := make([]byte, n)
	for i := range b {
		b[i] = "ab"[r.IntN(2)]
	}
	return string(b)
}
