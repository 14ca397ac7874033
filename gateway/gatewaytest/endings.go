package gatewaytest

import (
	"fmt"
	"strings"
)

// Endings are texts over the tables of [DDL] that a planner could stumble over: each is answered or refused, and the process lives.
func Endings() map[string]string {
	numbered := func(n int, part, separator string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(part, i)
		}
		return strings.Join(all, separator)
	}
	const people = "SELECT count(*) FROM people"
	return map[string]string{
		"grouped rows under a cap": "SELECT count(*) FROM (SELECT person, k, count(*) n FROM (SELECT a.person, a.amount + 1 AS k " +
			"FROM visits a JOIN visits b ON a.person = b.person) e GROUP BY person, k) t",
		"parentheses":             people + " WHERE " + strings.Repeat("(", 10_000) + "true" + strings.Repeat(")", 10_000),
		"parentheses that pass":   people + " WHERE " + strings.Repeat("(", 1000) + "age > 3" + strings.Repeat(")", 1000),
		"open parentheses":        people + " WHERE " + strings.Repeat("(", 10_000),
		"alternatives":            people + " WHERE " + numbered(5000, "age = %d", " OR "),
		"alternatives that pass":  people + " WHERE " + numbered(900, "age = %d", " OR "),
		"conditions that pass":    people + " WHERE " + numbered(900, "age <> %d", " AND "),
		"a list":                  people + " WHERE age IN (" + numbered(5000, "%d", ", ") + ")",
		"a list that passes":      people + " WHERE age IN (" + numbered(1000, "%d", ", ") + ")",
		"nested queries":          "SELECT count(*) FROM " + strings.Repeat("(SELECT * FROM ", 200) + "people" + strings.Repeat(") t", 200),
		"nested queries in WHERE": strings.Repeat("SELECT count(*) FROM people WHERE id IN (", 200) + "1" + strings.Repeat(")", 200),
		"a wide union":            "SELECT count(*) FROM (" + numbered(500, "SELECT age + %d FROM people", " UNION ALL ") + ") t",
		"a union that passes":     "SELECT count(*) FROM (" + numbered(20, "SELECT age + %d FROM people", " UNION ALL ") + ") t",
		"signs":                   "SELECT sum(" + strings.Repeat("- ", 3000) + "age) FROM people",
		"sums":                    "SELECT sum(" + numbered(2000, "%d", " + ") + " + age) FROM people",
		"cases": people + " WHERE " + strings.Repeat("CASE WHEN true THEN ", 500) + "true" +
			strings.Repeat(" END", 500),
	}
}
