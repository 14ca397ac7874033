package integration

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/testfiles"
)

// TestDraftedPoliciesKeepTheCorpus: what `policy init` drafts of the databases of the corpus, and `policy import` of PUMS' metadata for
// SmartNoise, is accepted once people filled it in as the corpus's own policies say, and every query keeps its verdict.
func TestDraftedPoliciesKeepTheCorpus(t *testing.T) {
	t.Parallel()
	sets := []dataset{census(t), pums(t), pagila(t)}
	units := map[string]string{"census": "people.person_id", "pums": "pums.pid", "pagila": "customer.customer_id"}
	s := prepareStack(t, sets...)
	for i, d := range sets {
		draft := s.run(t, "policy", "init", "--dsn", s.dsn(pgserver.Superuser, d.name), "--dataset", d.name, "--unit", units[d.name])
		sets[i].policy = fillDraft(t, draft, d.policy)
	}
	s.started(t, sets)
	client, other := s.analyst(t, "drafts"), verdicts(t)
	for _, q := range corpus(t, "queries.sql") {
		verdict := q.verdict
		if v, ok := other[q.id]; ok {
			verdict = v
		}
		if got := s.verdictOf(t, client, q); got != verdict {
			t.Errorf("%s: %s, want %s\n%s", q.id, got, verdict, q.sql)
		}
	}

	metadata := filepath.Join(s.dir, "PUMS_dup.yaml")
	write(t, metadata, read(t, testfiles.FetchedOr(t, "data/pums/PUMS_dup.yaml")))
	imported := s.run(t, "policy", "import", "smartnoise", "--dataset=pums", "--schema=public", metadata)
	file := filepath.Join(s.dir, "imported.policy.yaml")
	write(t, file, fillDraft(t, imported, testfiles.Own(t, "corpus/pums.policy.yaml")))
	s.run(t, "policy", "apply", "--config", s.config, file)
	s.kill()
	s.serve(t)
	for _, q := range corpus(t, "queries.sql") {
		if q.dataset != "pums" || strings.Contains(q.sql, "pums_null") {
			continue
		}
		if got := s.verdictOf(t, client, q); got != q.verdict {
			t.Errorf("%s, imported: %s, want %s\n%s", q.id, got, q.verdict, q.sql)
		}
	}
	answer, err := client.Query(t.Context(), api.QueryRequest{Dataset: "pums", Epsilon: "1",
		SQL: "SELECT sex, count(*) FROM pums GROUP BY sex"}, "")
	if err != nil || len(answer.Rows) != 2 {
		t.Errorf("%+v, %v", answer, err)
	}
}

// verdictOf is what the gateway makes of a query: "answer", "free" or "refuse CODE". It reads nobody's rows and costs nothing.
func (s *stack) verdictOf(t *testing.T, client *api.Client, q corpusQuery) string {
	t.Helper()
	e, err := client.Estimate(t.Context(), api.QueryRequest{Dataset: q.dataset, SQL: q.sql, Epsilon: "100", Delta: "1e-6"})
	switch {
	case err != nil:
		return "refuse " + problemOf(t, err).Code
	case e.Price.Epsilon == "0" && e.Price.Rho == "0":
		return "free"
	}
	return "answer"
}

var (
	draftTable    = regexp.MustCompile(`^  (?:# )?(\w+):( \{public: true\})?$`)
	draftSetting  = regexp.MustCompile(`^    (max_rows|max_groups): +___`)
	draftColumn   = regexp.MustCompile(`^      (?:# )?(\w+): +\{`)
	draftUnit     = regexp.MustCompile(`^    unit: +\{column: (\w+)\}`)
	policyTable   = regexp.MustCompile(`^  (\w+):(?: &\w+| \{public: true\}|)$`)
	policyPath    = regexp.MustCompile(`^    unit: (\{via: .*?\})`)
	policySetting = regexp.MustCompile(`^    (max_rows|max_groups): (\d+)`)
	policyColumn  = regexp.MustCompile(`^      (\w+): +(\{.*\})`)
)

// finished is what a policy of the corpus says of its tables.
type finished struct {
	public  map[string]bool
	paths   map[string]string // units that a path leads to
	bounds  map[string]string // table.max_rows and table.max_groups
	columns map[string][]string
	value   map[string]string // table.column
	budgets string
}

func readFinished(policy string) finished {
	f := finished{public: map[string]bool{}, paths: map[string]string{}, bounds: map[string]string{}, columns: map[string][]string{},
		value: map[string]string{}, budgets: policy[strings.Index(policy, "budgets:\n"):]}
	table := ""
	for line := range strings.Lines(policy) {
		line = strings.TrimSuffix(line, "\n")
		if m := policyTable.FindStringSubmatch(line); m != nil {
			table = m[1]
			f.public[table] = strings.HasSuffix(line, "{public: true}")
		} else if m := policyPath.FindStringSubmatch(line); m != nil {
			f.paths[table] = m[1]
		} else if m := policySetting.FindStringSubmatch(line); m != nil {
			f.bounds[table+"."+m[1]] = m[2]
		} else if m := policyColumn.FindStringSubmatch(line); m != nil {
			f.columns[table] = append(f.columns[table], m[1])
			f.value[table+"."+m[1]] = m[2]
		}
	}
	return f
}

// of names the table whose settings count: pums_null repeats those of pums by aliases.
func (f finished) of(table string) string {
	if table == "pums_null" {
		return "pums"
	}
	return table
}

// fillDraft fills a draft in as a finished policy says, line by line: blanks, columns, tables that are public, budgets. Units are the
// draft's own, or what it proposes instead.
func fillDraft(t *testing.T, draft, policy string) string {
	t.Helper()
	f := readFinished(policy)
	var b strings.Builder
	table, has := "", map[string]bool{}
	endTable := func() { // columns that the draft has no line for
		for _, column := range f.columns[f.of(table)] {
			if !has[column] && len(has) > 0 {
				b.WriteString("      " + column + ": " + f.value[f.of(table)+"."+column] + "\n")
			}
		}
		table, has = "", map[string]bool{}
	}
	for line := range strings.Lines(draft) {
		line = strings.TrimSuffix(line, "\n")
		if line == "budgets:" {
			endTable()
			break
		}
		if m := draftTable.FindStringSubmatch(line); m != nil {
			endTable()
			if table = m[1]; m[2] != "" && f.public[table] {
				line = "  " + table + ":" + m[2]
			}
		} else if m := draftSetting.FindStringSubmatch(line); m != nil {
			line = "    " + m[1] + ": " + f.bounds[f.of(table)+"."+m[1]]
		} else if m := draftUnit.FindStringSubmatch(line); m != nil && f.paths[table] != "" {
			continue // the proposal of another unit, below, is taken
		} else if strings.HasPrefix(line, "    # unit:") && strings.Contains(line, f.paths[table]) {
			line = "    unit: " + f.paths[table]
		} else if m := draftColumn.FindStringSubmatch(line); m != nil {
			has[m[1]] = true
			if value, ok := f.value[f.of(table)+"."+m[1]]; ok {
				line = "      " + m[1] + ": " + value
			}
		} else if line == "    # columns:" {
			line = "    columns:"
		}
		b.WriteString(line + "\n")
	}
	return b.String() + f.budgets
}
