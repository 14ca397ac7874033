package main

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
	"noisegate.example/cmd/noisegate/demodata"
	"noisegate.example/gateway/auth"
)

// maxTourRows is how many rows of an answer the tour prints.
const maxTourRows = 8

// tour asks four questions over HTTP and shows each answer next to what the same text gives as raw SQL. The raw answers come from the
// superuser that made the demo's people up; the gateway has no part in them.
func (d *demo) tour(ctx context.Context) error {
	if err := d.writeTokens(); err != nil {
		return err
	}
	d.welcome()
	for _, stop := range []func(context.Context) error{d.tourGroups, d.tourPrivateKeys, d.tourDifference, d.tourPrepared} {
		if err := stop(ctx); err != nil {
			return err
		}
	}
	noisegate := ownProgram()
	fmt.Fprintf(d.Out, "\nYour turn. In a browser, as the analyst (the address logs in once, within %.0f minutes):\n\n  %s\n",
		codeLifetime.Minutes(), d.consoleURL(auth.Analyst))
	fmt.Fprintf(d.Out, "\nIn another terminal:\n\n  export NOISEGATE_URL=%s %s\n"+
		"  %s query --epsilon 0.1 \"SELECT region, count(*), avg(amount) FROM visits GROUP BY 1\"\n"+
		"  %[3]s budget show\n  %[4]s %[3]s pate label %[5]s 0 1 2 3 --sigma 40\n\n"+
		"Or with a prompt, where \\d lists the tables and \\q leaves:\n\n  %[6]s\n\nCtrl-C ends the demo.\n",
		d.url, d.credential(auth.Analyst), noisegate, d.credential(auth.ML), demoEnsemble, d.prompt())
	return nil
}

// credential is the assignment by which the shell gives a client command its token.
func (d *demo) credential(role auth.Role) string {
	if d.files == nil {
		return "NOISEGATE_TOKEN=" + d.tokens[role]
	}
	return "NOISEGATE_TOKEN_FILE=" + d.files[role]
}

// prompt is how psql is started as the analyst.
func (d *demo) prompt() string {
	at, err := url.Parse(d.pgURL)
	if d.files == nil || err != nil {
		return "psql '" + d.pgURL + "'"
	}
	at.User = url.User(at.User.Username())
	return "PGPASSWORD=$(cat " + d.files[auth.Analyst] + ") psql '" + at.String() + "'"
}

// ownProgram is what starts this program in a shell: its name where the PATH has it, else its place, so that what the demo
// prints can be copied.
func ownProgram() string {
	const name = "noisegate"
	if _, err := exec.LookPath(name); err == nil {
		return name
	}
	if place, err := os.Executable(); err == nil {
		return place
	}
	return name
}

func (d *demo) welcome() {
	fmt.Fprintf(d.Out, "  ready after %.1f s\n\n  HTTP     %s\n  docs     %s/docs\n  psql     %s\n",
		time.Since(d.began).Seconds(), d.url, d.url, d.pgURL)
	for _, role := range []auth.Role{auth.Analyst, auth.Steward, auth.ML} {
		fmt.Fprintf(d.Out, "  %-8s %s: %s\n", role, demoSubject(role), cmp.Or(d.files[role], d.tokens[role]))
	}
	fmt.Fprintf(d.Out, "  dataset  %s: people, visits, regions\n  votes    %s: %d teachers\n", demoDataset, demoEnsemble, demoTeachers)
}

// tourGroups counts people by a public key: the noise is small compared with the numbers.
func (d *demo) tourGroups(ctx context.Context) error {
	_, _, err := d.compare(ctx, api.QueryRequest{
		SQL:     "SELECT marital_status, count(*) AS n FROM people GROUP BY 1 ORDER BY n DESC",
		Epsilon: "0.5"})
	return err
}

// tourPrivateKeys lists values that are themselves private: a group of one must not appear.
func (d *demo) tourPrivateKeys(ctx context.Context) error {
	answer, raw, err := d.compare(ctx, api.QueryRequest{
		SQL:     "SELECT native_country, count(*) AS n FROM people GROUP BY 1 ORDER BY n DESC",
		Epsilon: "0.5", Delta: "1e-9"})
	if err != nil {
		return err
	}
	verdict := "leaves it out"
	for _, row := range answer.Rows {
		if row[0].String() == demodata.TheOne {
			verdict = "shows it, by a chance of less than one in a billion"
		}
	}
	fmt.Fprintf(d.Out, " raw SQL also lists %s, with exactly %s person; the gateway %s\n", demodata.TheOne, raw[demodata.TheOne][0], verdict)
	return nil
}

// tourDifference is the attack that aggregates alone do not stop: two sums that differ in one person.
func (d *demo) tourDifference(ctx context.Context) error {
	answer, raw, err := d.compare(ctx, api.QueryRequest{
		SQL: "SELECT sum(hours_per_week) AS everybody,\n" +
			"            sum(hours_per_week) FILTER (WHERE native_country IS DISTINCT FROM '" + demodata.TheOne + "') AS all_but_one FROM people",
		Epsilon: "0.5"})
	if err != nil {
		return err
	}
	noisy := difference(answer.Rows[0][0].String(), answer.Rows[0][1].String())
	exact := difference(raw[""][0], raw[""][1])
	fmt.Fprintf(d.Out, " raw SQL, by subtraction: the one person from %s works %s hours a week; the gateway's difference is %s\n",
		demodata.TheOne, exact, noisy)
	return nil
}

// tourPrepared asks of a table that has a prepared copy, and says what the same price gives of the table itself.
func (d *demo) tourPrepared(ctx context.Context) error {
	question := api.QueryRequest{SQL: "SELECT region, count(*) AS n FROM visits GROUP BY 1 ORDER BY n DESC", Epsilon: "0.25"}
	answer, _, err := d.compare(ctx, question)
	if err != nil {
		return err
	}
	question.Dataset, question.Prepared = demoDataset, new(bool)
	itself, err := api.NewClient(d.url, d.tokens[auth.Analyst]).Estimate(ctx, question)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, " answered from %s; of the table itself this price gives ± %s\n", answer.DataVersion,
		groupThousands(itself.Outputs[0].HalfWidth.String()))
	return nil
}

func difference(a, b string) string {
	x, ok1 := new(big.Rat).SetString(a)
	y, ok2 := new(big.Rat).SetString(b)
	if !ok1 || !ok2 {
		return "?"
	}
	return groupThousands(new(big.Rat).Sub(x, y).RatString())
}

// compare asks the gateway and, as the superuser, PostgreSQL; it prints both side by side. The raw values are returned by
// group key ("" without one).
func (d *demo) compare(ctx context.Context, question api.QueryRequest) (*api.QueryResponse, map[string][]string, error) {
	question.Dataset = demoDataset
	fmt.Fprintf(d.Out, "\n%s> %s;\n", demoSubject(auth.Analyst), question.SQL)
	answer, err := api.NewClient(d.url, d.tokens[auth.Analyst]).Query(ctx, question, "")
	if err != nil {
		return nil, nil, questionError{err, question.SQL}
	}
	keys := 0
	for _, column := range answer.Columns {
		if column.Kind == "key" {
			keys++
		}
	}
	raw, err := d.raw(ctx, question.SQL, keys)
	if err != nil {
		return nil, nil, err
	}
	t := newAnswerTable(answer.Result, confidenceOf(question))
	t.grouped = true
	for _, column := range answer.Columns[keys:] {
		t.heads = append(t.heads, "raw "+column.Name)
	}
	for i, row := range answer.Rows {
		exact, ok := raw[groupKey(row[:keys])]
		if !ok { // a public key that nobody has
			exact = make([]string, len(answer.Columns)-keys)
		}
		t.rows[i] = append(t.rows[i], exact...)
	}
	hidden := len(t.rows) - maxTourRows
	t.rows = t.rows[:min(len(t.rows), maxTourRows)]
	t.write(d.Out)
	if hidden > 0 {
		fmt.Fprintf(d.Out, " (%d more rows)\n", hidden)
	}
	d.showNotes(answer.Notes)
	fmt.Fprintf(d.Out, " %s\n", spendLine(answer))
	return answer, raw, nil
}

func groupKey(values []api.Value) string {
	parts := make([]string, 0, len(values))
	for _, v := range values {
		parts = append(parts, v.String())
	}
	return strings.Join(parts, "\x00")
}

// raw runs the same text on the protected database, with no protection at all.
func (d *demo) raw(ctx context.Context, sql string, keys int) (map[string][]string, error) {
	result := map[string][]string{}
	err := d.database.as(ctx, d.database.super, demoProtected, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, sql, pgx.QueryResultFormats{pgx.TextFormatCode})
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var texts []string
			for _, value := range rows.RawValues() {
				texts = append(texts, string(value))
			}
			result[strings.Join(texts[:keys], "\x00")] = texts[keys:]
		}
		return rows.Err()
	})
	return result, err
}
