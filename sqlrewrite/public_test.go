package sqlrewrite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate/catalog"
	"noisegate/sqlrewrite/internal/parsetest"
)

// Queries that read nothing private: what runs, and what the answer's columns are. "private" says that a query does need a price.
func TestGoldenFree(t *testing.T) {
	runGoldenFile(t, "free", func(t *testing.T, d *datadriven.TestData, snapshot *catalog.Snapshot) string {
		options := parseOptions(t, d)
		if d.Cmd == "mysql" {
			options.Dialect = DialectMySQL
		}
		private, public, err := Read(d.Input, snapshot, options)
		if d.Cmd == "refuse" != (err != nil) || d.Cmd == "private" != (private != nil) {
			d.Fatalf(t, "%s: private = %v, err = %v", d.Cmd, private != nil, err)
		}
		switch {
		case err != nil:
			return parsetest.ShowFault(err)
		case private != nil:
			return private.Explain().Tree
		default:
			return showPublic(t, d, public)
		}
	})
}

func showPublic(t *testing.T, d *datadriven.TestData, p *PublicPlan) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(p.Tree())
	var columns []string
	for _, c := range p.Columns() {
		columns = append(columns, c.Name+" "+c.Type)
	}
	fmt.Fprintf(&b, "columns: %s\n", strings.Join(columns, ", "))
	if post, ok := p.Post(); ok {
		checkArgs(t, d, post.SQL(), post.Args())
		fmt.Fprintf(&b, "sql:\n%s%s", parsetest.Indent(post.SQL()), showArgs(post.Args(), 0))
		for _, p := range post.Preconditions() {
			fmt.Fprintf(&b, "pin: %s.%s\n", p.Schema, p.Table)
		}
	}
	return b.String()
}
