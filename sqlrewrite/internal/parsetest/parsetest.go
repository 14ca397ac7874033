// Package parsetest has what tests of the parsers and of the whole rewriter share: texts, how long one may take, and how a refusal reads.
//
// It knows texts. It does not know the parsers.
package parsetest

import (
	"errors"
	"runtime"
	"strings"
	"syscall"
	"time"

	"noisegate.example/internal/fault"
)

func Indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n" }

// Bombs are shapes that grow without end; n is the number of repetitions.
var Bombs = map[string]func(n int) string{
	"not":               func(n int) string { return "SELECT 1 WHERE " + strings.Repeat("NOT ", n) + "true" },
	"unary minus":       func(n int) string { return "SELECT " + strings.Repeat("- ", n) + "x" },
	"unary minus const": func(n int) string { return "SELECT " + strings.Repeat("- ", n) + "1" },
	"plus":              func(n int) string { return "SELECT " + strings.Repeat("1+", n) + "1" },
	"power":             func(n int) string { return "SELECT " + strings.Repeat("1^", n) + "1" },
	"concat":            func(n int) string { return "SELECT " + strings.Repeat("a||", n) + "a" },
	"comparison":        func(n int) string { return "SELECT " + strings.Repeat("(1<", n) + "1" + strings.Repeat(")", n) },
	"and":               func(n int) string { return "SELECT 1 WHERE a" + strings.Repeat(" AND a", n) },
	"or":                func(n int) string { return "SELECT 1 WHERE a" + strings.Repeat(" OR a", n) },
	"and or": func(n int) string {
		return "SELECT 1 WHERE a" + strings.Repeat(" AND (a OR a", n) + strings.Repeat(")", n)
	},
	"union":       func(n int) string { return "SELECT 1" + strings.Repeat(" UNION SELECT 1", n) },
	"union right": func(n int) string { return strings.Repeat("SELECT 1 UNION (", n) + "SELECT 1" + strings.Repeat(")", n) },
	"case": func(n int) string {
		return "SELECT " + strings.Repeat("CASE WHEN a THEN ", n) + "1" + strings.Repeat(" END", n)
	},
	"case when":     func(n int) string { return "SELECT CASE" + strings.Repeat(" WHEN a THEN 1", n) + " END" },
	"function":      func(n int) string { return "SELECT " + strings.Repeat("f(", n) + "1" + strings.Repeat(")", n) },
	"arguments":     func(n int) string { return "SELECT f(1" + strings.Repeat(",1", n) + ")" },
	"parentheses":   func(n int) string { return "SELECT " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n) },
	"open only":     func(n int) string { return "SELECT " + strings.Repeat("(", n) },
	"in list":       func(n int) string { return "SELECT 1 WHERE a IN (1" + strings.Repeat(",1", n) + ")" },
	"in nested":     func(n int) string { return "SELECT " + strings.Repeat("1 IN (", n) + "1" + strings.Repeat(")", n) },
	"subquery":      func(n int) string { return "SELECT " + strings.Repeat("(SELECT ", n) + "1" + strings.Repeat(")", n) },
	"subquery from": func(n int) string { return strings.Repeat("SELECT 1 FROM (", n) + "t" + strings.Repeat(") t", n) },
	"exists": func(n int) string {
		return "SELECT " + strings.Repeat("EXISTS(SELECT ", n) + "1" + strings.Repeat(")", n)
	},
	"with": func(n int) string {
		return strings.Repeat("WITH a AS (", n) + "SELECT 1" + strings.Repeat(") SELECT 1", n)
	},
	"join": func(n int) string { return "SELECT 1 FROM t" + strings.Repeat(" JOIN t ON a", n) },
	"join nested": func(n int) string {
		return "SELECT 1 FROM " + strings.Repeat("(t JOIN ", n) + "t" + strings.Repeat(" ON a)", n)
	},
	"from": func(n int) string { return "SELECT 1 FROM t" + strings.Repeat(",t", n) },
	"cast": func(n int) string { return "SELECT 1" + strings.Repeat("::int", n) },
	"cast nested": func(n int) string {
		return "SELECT " + strings.Repeat("CAST(", n) + "1" + strings.Repeat(" AS int)", n)
	},
	"array":     func(n int) string { return "SELECT " + strings.Repeat("ARRAY[", n) + "1" + strings.Repeat("]", n) },
	"row":       func(n int) string { return "SELECT " + strings.Repeat("ROW(", n) + "1" + strings.Repeat(")", n) },
	"subscript": func(n int) string { return "SELECT a" + strings.Repeat("[1]", n) },
	"is null":   func(n int) string { return "SELECT a" + strings.Repeat(" IS NULL", n) },
	"between": func(n int) string {
		return "SELECT " + strings.Repeat("1 BETWEEN 1 AND (", n) + "1" + strings.Repeat(")", n)
	},
	"like":     func(n int) string { return "SELECT " + strings.Repeat("a LIKE (", n) + "a" + strings.Repeat(")", n) },
	"coalesce": func(n int) string { return "SELECT " + strings.Repeat("coalesce(", n) + "1" + strings.Repeat(")", n) },
	"filter": func(n int) string {
		return "SELECT " + strings.Repeat("f() FILTER (WHERE ", n) + "a" + strings.Repeat(")", n)
	},
	"window": func(n int) string {
		return "SELECT " + strings.Repeat("f() OVER (ORDER BY ", n) + "a" + strings.Repeat(")", n)
	},
	"collate":      func(n int) string { return "SELECT a" + strings.Repeat(` COLLATE "C"`, n) },
	"at time zone": func(n int) string { return "SELECT a" + strings.Repeat(" AT TIME ZONE 'UTC'", n) },
	"grouping sets": func(n int) string {
		return "SELECT 1 GROUP BY " + strings.Repeat("GROUPING SETS (", n) + "a" + strings.Repeat(")", n)
	},
	"items":         func(n int) string { return "SELECT 1" + strings.Repeat(",1", n) },
	"group by":      func(n int) string { return "SELECT 1 GROUP BY a" + strings.Repeat(",a", n) },
	"order by":      func(n int) string { return "SELECT 1 ORDER BY a" + strings.Repeat(",a", n) },
	"statements":    func(n int) string { return strings.Repeat("SELECT 1;", n) },
	"semicolons":    func(n int) string { return "SELECT 1" + strings.Repeat(";", n) },
	"dots":          func(n int) string { return "SELECT a" + strings.Repeat(".a", n) },
	"comment":       func(n int) string { return "SELECT 1" + strings.Repeat("/*", n) + strings.Repeat("*/", n) },
	"comment open":  func(n int) string { return "SELECT 1" + strings.Repeat("/*", n) },
	"comments":      func(n int) string { return "SELECT 1" + strings.Repeat("/**/", n) },
	"plus run":      func(n int) string { return "SELECT 1" + strings.Repeat("+", n) + "1" },
	"plus minus":    func(n int) string { return "SELECT 1" + strings.Repeat("+-+", n) + "1" },
	"plus runs":     func(n int) string { return "SELECT 1" + strings.Repeat(strings.Repeat("+", 32)+" ", n) + "1" },
	"star slash":    func(n int) string { return "SELECT 1" + strings.Repeat("*/", n) },
	"decoration":    func(n int) string { return strings.Repeat("-- "+strings.Repeat("=", 30)+"\n", n) + "SELECT 1" },
	"string":        func(n int) string { return "SELECT '" + strings.Repeat("a''", n) + "'" },
	"strings":       func(n int) string { return "SELECT 'a'" + strings.Repeat("\n'a'", n) },
	"string open":   func(n int) string { return "SELECT '" + strings.Repeat("a", n) },
	"dollar quotes": func(n int) string { return "SELECT " + strings.Repeat("$a$", n) },
	"digits":        func(n int) string { return "SELECT " + strings.Repeat("9", n) },
	"identifier":    func(n int) string { return "SELECT " + strings.Repeat("é", n) },
	"whitespace":    func(n int) string { return "SELECT " + strings.Repeat(" \n", n) + "1" },
	"numeric type":  func(n int) string { return "SELECT 1::numeric(1" + strings.Repeat(",1", n) + ")" },
	"array type":    func(n int) string { return "SELECT a::int" + strings.Repeat("[]", n) },
	"explain":       func(n int) string { return strings.Repeat("EXPLAIN ", n) + "SELECT 1" },
	"insert":        func(n int) string { return "INSERT INTO t VALUES " + strings.Repeat("(1),", n) + "(1)" },
}

// Bomb repeats a shape until the text would be longer than size bytes.
func Bomb(shape func(n int) string, size int) string {
	one, two := len(shape(1)), len(shape(2))
	return shape(max(1, 1+(size-one)/(two-one)))
}

const Harmless = `SELECT sex, count(*) FROM people WHERE age > 30 GROUP BY sex`

// Longest is what a text of up to 64 KB may take, whatever is in it: ten times the 50 ms that a quiet machine needs at most, as processor
// time grows too where others use the same cores and caches.
const Longest = 500 * time.Millisecond

// Fastest is what work takes at least: processor time of its thread, the least of up to three tries, since the machine runs other things.
func Fastest(work func()) time.Duration {
	runtime.LockOSThread() // C runs on the thread that calls it
	defer runtime.UnlockOSThread()
	least := time.Hour
	for try := 0; try < 3 && least > Longest; try++ {
		start := threadTime()
		work()
		least = min(least, threadTime()-start)
	}
	return least
}

// threadTime is the processor time of this thread; the time of day where the system does not tell.
func threadTime() time.Duration {
	const thread = 1 // RUSAGE_THREAD of Linux
	var usage syscall.Rusage
	if runtime.GOOS != "linux" || syscall.Getrusage(thread, &usage) != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func ShowFault(err error) string {
	var f *fault.Error
	if !errors.As(err, &f) {
		return "not a fault: " + err.Error()
	}
	text := f.Error() + "\n"
	if f.Hint != "" {
		text += "hint: " + f.Hint + "\n"
	}
	if cause := errors.Unwrap(f); cause != nil {
		text += "cause: " + cause.Error() + "\n"
	}
	return text
}

// Everything is a set of queries that between them visit every conversion.
var Everything = []string{
	`SELECT DISTINCT a AS x, t.b, count(*) FILTER (WHERE c), sum(DISTINCT d ORDER BY e DESC NULLS LAST), *, t.*
	 FROM s.t AS t, u LEFT JOIN v USING (k) RIGHT JOIN w ON w.a = u.a CROSS JOIN z
	 WHERE a = 1 AND NOT b OR c IS NOT NULL AND d IS UNKNOWN
	 GROUP BY a, 2 HAVING count(*) > 10 ORDER BY 1 DESC, a NULLS FIRST LIMIT 5 OFFSET 2`,
	`SELECT CASE a WHEN 1 THEN 'x' ELSE 'y' END, CASE WHEN a THEN b END, a::numeric(10,2), DATE '2024-01-01',
	 coalesce(a, -1, 1.5), greatest(a, b), least(a, b), nullif(a, b), -a, a IN (1, 2), a NOT BETWEEN 1 AND 2, a ILIKE 'x%',
	 a IS DISTINCT FROM b, percentile_cont(0.5) WITHIN GROUP (ORDER BY a), extract(dow FROM a), NULL, TRUE FROM t`,
	`WITH c (x) AS (SELECT 1) (SELECT DISTINCT ON (a) sum(a) OVER (w ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), rank() OVER w FROM c
	 WINDOW w AS (PARTITION BY b ORDER BY d) LIMIT 3) UNION ALL SELECT x FROM (SELECT 2) AS t (x) WHERE EXISTS (SELECT 1) AND 1 IN (SELECT 2) ORDER BY 1 OFFSET 2`,
}
