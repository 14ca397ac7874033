package integration

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
	"noisegate.example/internal/testfiles"
)

var (
	realFolder = flag.String("real", "", "where make real has put the tables and questions of published benchmarks; "+
		"without it TestReal asks those of the repository")
	realDrawn   = flag.Bool("real-draws", false, "TestReal judges how useful answers are")
	realRewrite = flag.Bool("real-rewrite", false, "TestReal writes what it finds of the families it asks into its ratchet")
)

const (
	realHome    = "testdata/real"
	realRatchet = realHome + "/ratchet.json"
	// Each question is asked realDraws times at ε 1, each time by another analyst: by make asked and make real.
	realDraws = 5
	// realSome is how many questions a family has for each that make test asks.
	realSome = 3
	// realExact is the ε at which an answer is compared with PostgreSQL's.
	realExact = "10000"
	// realUseful is the largest error of an answer that is useful: of whole answers, missing rows and all. The gateway judges single rows by
	// their intervals (README.md).
	realUseful = 0.1
)

// realFamily is a set of questions over one dataset or several.
type realFamily struct {
	name      string
	sets      []dataset
	questions []realQuestion
}

// realQuestion is one question as it was written.
type realQuestion struct {
	id, dataset, sql string
	dialect          string
	truth            string // what PostgreSQL is asked, where it is not sql
}

// realVerdict has the outcome of a question.
type realVerdict struct {
	id                   string
	refused              string // the code; empty: it was answered
	why                  string // of a refusal
	rows                 int    // PostgreSQL's
	missing, superfluous int
	// differs is a value at ε 10,000 that is not PostgreSQL's by more than the noise; empty: there is none.
	differs string
	// measured is the median over draws of the median error of PostgreSQL's values, foreseen what the intervals say of it, and atLeast
	// what the narrowest interval of each value says.
	measured, foreseen, atLeast float64
	took                        time.Duration
}

func (v realVerdict) answered() bool { return v.refused == "" }

func (v realVerdict) useful() bool { return v.answered() && v.foreseen <= realUseful }

// TestReal asks questions as people, their tools and published benchmarks write them, one family after the other, and prints how many of
// each are answered, and how many of the answers are useful. The ratchet names both: none may leave it. testdata/real/README.md says what
// useful is, and why no run fails by chance. make test asks one question in realSome, none of them at ε 1, so that nothing is said of
// usefulness.
//
// needs: postgres
func TestReal(t *testing.T) {
	t.Parallel()
	draws := 0
	if *realDrawn || *realFolder != "" || *realRewrite {
		draws = realDraws
	}
	families := realFamilies(t)
	if draws == 0 {
		for i := range families {
			families[i].questions = someOf(families[i].questions)
		}
	}
	verdicts := make([][]realVerdict, len(families))
	t.Run("families", func(t *testing.T) {
		for i, f := range families {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				verdicts[i] = askAll(t, f, draws)
			})
		}
	})
	if t.Failed() {
		return
	}
	kept := readRatchet(t)
	var lines, table strings.Builder
	table.WriteString("family | answered | useful | of\n")
	for i, f := range families {
		if verdicts[i] == nil {
			continue // go test -run did not name it
		}
		found := ratchetOf(verdicts[i])
		lines.WriteString(realLines(f.name, verdicts[i]))
		fmt.Fprintf(&table, "%s | %d | %d | %d\n", f.name, len(found.Answered), len(found.Useful), len(f.questions))
		of := kept[f.name]
		if draws == 0 {
			of.Answered, of.Useful = amongst(of.Answered, f.questions), nil
		}
		kept[f.name] = of.against(t, f.name, found, verdicts[i])
	}
	t.Log("\n" + table.String())
	if *realFolder != "" {
		write(t, filepath.Join(*realFolder, "report"), lines.String()+table.String())
	}
	if *realRewrite {
		text, err := json.MarshalIndent(kept, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		write(t, realRatchet, string(text)+"\n")
	}
}

// someOf are every realSome-th of questions.
func someOf(questions []realQuestion) (some []realQuestion) {
	for i := 0; i < len(questions); i += realSome {
		some = append(some, questions[i])
	}
	return some
}

// amongst are the names of those questions that are asked.
func amongst(names []string, asked []realQuestion) (some []string) {
	for _, q := range asked {
		if slices.Contains(names, q.id) {
			some = append(some, q.id)
		}
	}
	return some
}

// realFamilies are the folders of testdata/real, and corpus/real. A folder has tables.sql (what follows a line "-- rows" runs when they are
// filled), policy.yaml and questions.sql; of one without questions, questions and rows are in the folder that make real makes.
func realFamilies(t *testing.T) []realFamily {
	t.Helper()
	folders, err := filepath.Glob(realHome + "/*/tables.sql")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no family: %v", err)
	}
	var families []realFamily
	for _, tables := range folders {
		home := filepath.Dir(tables)
		name := filepath.Base(home)
		rows := ""
		questions := filepath.Join(home, "questions.sql")
		if _, err := os.Stat(questions); err != nil {
			if *realFolder == "" {
				continue // make real asks them
			}
			benchmark, _, _ := strings.Cut(name, "-") // one benchmark may be a family for each unit
			rows = filepath.Join(*realFolder, benchmark)
			questions = filepath.Join(rows, "questions.sql")
		}
		policy := read(t, filepath.Join(home, "policy.yaml")) // of a family over the tables of another one it names that one's dataset
		of := regexp.MustCompile(`(?m)^dataset: (\S+)$`).FindStringSubmatch(policy)[1]
		set := dataset{name: of, policy: policy, timeout: "5m", load: realLoad(read(t, tables), rows)}
		families = append(families, realFamily{name, []dataset{set}, realQuestions(read(t, questions), of)})
	}
	return append(families, realCorpus(t))
}

// checkForeignKeys checks the foreign keys of all tables, each by one join.
const checkForeignKeys = `DO $$ DECLARE c record; BEGIN
	FOR c IN SELECT conrelid::regclass AS t, conname AS name, pg_get_constraintdef(oid) AS def FROM pg_constraint
		WHERE contype = 'f' AND connamespace = 'public'::regnamespace LOOP
		EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I, ADD CONSTRAINT %2$I %s', c.t, c.name, c.def);
	END LOOP; END $$`

// realLoad makes tables and fills each that has a file NAME.csv in the folder. Foreign keys are checked when all rows are there: row by row
// that takes as long as the rows themselves.
func realLoad(tables, folder string) func(context.Context, *pgx.Conn) error {
	return func(ctx context.Context, conn *pgx.Conn) error {
		before, after, _ := strings.Cut(tables, "\n-- rows\n")
		if err := execAll(ctx, conn, "SET session_replication_role = replica;"+before); err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(folder, "*.csv"))
		if err != nil {
			return err
		}
		for _, file := range files {
			table := pgx.Identifier{strings.TrimSuffix(filepath.Base(file), ".csv")}.Sanitize()
			f, err := os.Open(file)
			if err != nil {
				return err
			}
			_, err = conn.PgConn().CopyFrom(ctx, f, "COPY "+table+" FROM STDIN (FORMAT csv, DELIMITER '|')")
			_ = f.Close()
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
		return execAll(ctx, conn, after+"\n;RESET session_replication_role;"+checkForeignKeys)
	}
}

// realQuestions reads questions, each below a line "-- [name]".
func realQuestions(text, dataset string) []realQuestion {
	head := regexp.MustCompile(`(?m)^-- \[(\S+)\]$`)
	places := head.FindAllStringSubmatchIndex(text, -1)
	var questions []realQuestion
	for i, p := range places {
		end := len(text)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		questions = append(questions, realQuestion{id: text[p[2]:p[3]], dataset: dataset, sql: strings.TrimSpace(text[p[1]:end])})
	}
	return questions
}

// realCorpus are the questions of corpus/real, but for the one that is asked over psql's protocol alone.
func realCorpus(t *testing.T) realFamily {
	t.Helper()
	f := realFamily{name: "corpus"}
	for _, name := range []string{"shop", "star", "ward"} {
		tables := testfiles.Own(t, "corpus/real/"+name+".sql")
		policy := testfiles.Own(t, "corpus/real/"+name+".policy.yaml")
		policy = strings.NewReplacer("epsilon: 100000,", "epsilon: 1000000,", "epsilon: 10000,", "epsilon: 900000,",
			"max_epsilon_per_query: 100,", "max_epsilon_per_query: 10000,").Replace(policy)
		f.sets = append(f.sets, dataset{name: name, policy: policy, load: realLoad(tables, "")})
	}
	head := regexp.MustCompile(`^-- dataset: (\w+)\n(?:-- dialect: (\w+)\n)?`)
	files, err := filepath.Glob("../internal/testfiles/testdata/corpus/real/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text := read(t, file)
		m := head.FindStringSubmatch(text)
		if m == nil || strings.Contains(text, "over psql's protocol") {
			continue
		}
		q := realQuestion{id: strings.TrimSuffix(filepath.Base(file), ".sql"), dataset: m[1], dialect: m[2]}
		q.sql = strings.TrimSpace(text[len(m[0]):])
		if q.dialect == "mysql" { // in PostgreSQL's words
			q.truth = regexp.MustCompile(`sum\((.*?)\)`).ReplaceAllString(q.sql, "sum(($1)::int)")
		}
		f.questions = append(f.questions, q)
	}
	return f
}

// askAll asks the questions of a family.
func askAll(t *testing.T, f realFamily, draws int) []realVerdict {
	s := newStack(t, f.sets...)
	verdicts := make([]realVerdict, len(f.questions))
	t.Run("questions", func(t *testing.T) {
		for i, q := range f.questions {
			t.Run(q.id, func(t *testing.T) {
				t.Parallel()
				var analysts []*api.Client
				for draw := range 1 + draws {
					analysts = append(analysts, s.analyst(t, fmt.Sprintf("%s-%d", q.id, draw)))
				}
				start := time.Now()
				verdicts[i] = s.askReal(t, analysts, q)
				verdicts[i].took = time.Since(start)
			})
		}
	})
	return verdicts
}

// askReal asks one question: the first analyst at a price at which noise is next to nothing, the others at ε 1.
func (s *stack) askReal(t *testing.T, analysts []*api.Client, q realQuestion) realVerdict {
	t.Helper()
	request := api.QueryRequest{Dataset: q.dataset, SQL: q.sql, Dialect: q.dialect, Epsilon: realExact, Delta: "1e-7",
		Confidence: api.Level(confidence)}
	var answers []*api.QueryResponse
	for _, analyst := range analysts {
		answer, err := analyst.Query(t.Context(), request, "")
		if err != nil {
			p := problemOf(t, err)
			return realVerdict{id: q.id, refused: p.Code, why: p.Detail}
		}
		answers = append(answers, answer)
		request.Epsilon, request.Confidence = "1", api.Level(0.5)
	}
	v := realVerdict{id: q.id}
	v.judge(s.plain(t, q.dataset, cmp.Or(q.truth, q.sql)), answers[0], answers[1:])
	return v
}

// judge compares PostgreSQL's rows with an answer at ε 10,000, and answers at ε 1 whose intervals hold every other time.
func (v *realVerdict) judge(truth [][]string, exact *api.QueryResponse, draws []*api.QueryResponse) {
	want, got := realRows(exact.Columns, truth), realRows(exact.Columns, textsOf(exact.Rows))
	v.rows = len(want)
	for key := range got {
		if want[key] == nil {
			v.superfluous++
		}
	}
	noisy := make([]map[string]*realRow, len(draws))
	for i, draw := range draws {
		noisy[i] = realRows(draw.Columns, textsOf(draw.Rows))
	}
	values := valuesOf(exact.Columns)
	var foreseen, atLeast []float64
	measured := make([][]float64, len(draws))
	for key, row := range want {
		near := got[key]
		if near == nil {
			v.missing++
		}
		if len(values) == 0 { // its rows are all that is asked for
			foreseen, atLeast = append(foreseen, missed(near)), append(atLeast, missed(near))
			for i := range draws {
				measured[i] = append(measured[i], missed(noisy[i][key]))
			}
		}
		for _, c := range values {
			cell := realCell{truth: row.values[c]}
			if near != nil {
				cell.exact, cell.widest = &near.values[c], widthOf(exact, near.place, c)
			}
			for i, draw := range draws {
				if there := noisy[i][key]; there != nil {
					cell.noisy[i], cell.widths[i] = &there.values[c], widthOf(draw, there.place, c)
				}
			}
			if !cell.equal() {
				v.differs = fmt.Sprintf("%s %s is %s, not %s, ± %g", key, exact.Columns[c].Name, *cell.exact, cell.truth, cell.widest)
			}
			if !cell.measurable() {
				continue
			}
			foreseen, atLeast = append(foreseen, cell.foreseen(median)), append(atLeast, cell.foreseen(slices.Min))
			for i := range draws {
				measured[i] = append(measured[i], cell.measured(i))
			}
		}
	}
	v.foreseen, v.atLeast = median(foreseen), median(atLeast)
	var medians []float64
	for i := range measured {
		medians = append(medians, median(measured[i]))
	}
	v.measured = median(medians)
}

// realRow is a row of an answer, and where it stands.
type realRow struct {
	values []string
	place  int
}

// realRows are rows by their keys. Rows of equal keys are told apart by their order.
func realRows(columns []api.Column, rows [][]string) map[string]*realRow {
	byKey := map[string]*realRow{}
	for place, row := range rows {
		var key strings.Builder
		for c, column := range columns {
			if column.Kind == "key" || column.Kind == "public" {
				fmt.Fprintf(&key, "%q ", spelled(row[c]))
			}
		}
		name := key.String()
		for n := 2; byKey[name] != nil; n++ {
			name = fmt.Sprintf("%s#%d", key.String(), n)
		}
		byKey[name] = &realRow{row, place}
	}
	return byKey
}

func missed(row *realRow) float64 {
	if row == nil {
		return 1
	}
	return 0
}

// realCell is one value of PostgreSQL's answer, and what came of it. A row that is not in an answer has no value there.
type realCell struct {
	truth  string
	exact  *string // at ε 10,000
	widest float64 // of its interval, which all but never misses; NaN: it has none
	noisy  [realDraws]*string
	widths [realDraws]float64 // of intervals that hold every other time
}

// measurable: its error has a relative size.
func (c *realCell) measurable() bool {
	truth, isNumber := floatOf(c.truth)
	return c.truth != null && (!isNumber || truth != 0)
}

// equal: the value at ε 10,000 is PostgreSQL's, but for twice the width of an interval that a right gateway misses once in 10¹⁸ cells.
func (c *realCell) equal() bool {
	if c.exact == nil {
		return true // it is counted as missing
	}
	width := c.widest
	if math.IsNaN(width) {
		width = 0
	}
	truth, _ := floatOf(c.truth)
	return c.off(c.exact) <= 2*width+1e-9*math.Abs(truth)
}

// off gives the distance of a value from PostgreSQL's where both are numbers; else 0 if they are the same, and infinity if not.
func (c *realCell) off(value *string) float64 {
	truth, isNumber := floatOf(c.truth)
	if got, ok := floatOf(*value); ok && isNumber {
		return math.Abs(got - truth)
	}
	if spelled(*value) == spelled(c.truth) {
		return 0
	}
	return math.Inf(1)
}

// measured is the relative error of a draw; 1 where the row is missing, and at most 1.
func (c *realCell) measured(draw int) float64 {
	if c.noisy[draw] == nil {
		return 1
	}
	return c.relative(c.off(c.noisy[draw]))
}

func (c *realCell) relative(off float64) float64 {
	if off == 0 {
		return 0
	}
	truth, _ := floatOf(c.truth)
	return min(1, off/math.Abs(truth))
}

// foreseen is an upper bound of the median of the relative error over all noise: that of the noise, by the law that the interval is
// made of, and what bounds change. Where there is no interval, it is the error of the draws. of chooses among draws, which differ where
// an interval depends on noise: its median or the least.
func (c *realCell) foreseen(of func([]float64) float64) float64 {
	if c.exact == nil {
		return 1
	}
	bias := c.off(c.exact)
	if c.equal() {
		bias = 0
	}
	errs := make([]float64, realDraws)
	for i := range errs {
		switch {
		case c.noisy[i] == nil:
			errs[i] = 1
		case math.IsNaN(c.widths[i]):
			errs[i] = c.measured(i)
		default:
			errs[i] = c.relative(bias + c.widths[i])
		}
	}
	return of(errs)
}

// valuesOf are the places of columns that are released.
func valuesOf(columns []api.Column) (places []int) {
	for c, column := range columns {
		if column.Kind != "key" && column.Kind != "public" {
			places = append(places, c)
		}
	}
	return places
}

// widthOf is the half-width of an interval, NaN where there is none.
func widthOf(answer *api.QueryResponse, row, column int) float64 {
	b := answer.Intervals[row][column]
	if b == nil {
		return math.NaN()
	}
	value, ok1 := floatOf(answer.Rows[row][column].String())
	low, ok2 := floatOf(b[0].String())
	high, ok3 := floatOf(b[1].String())
	if !ok1 || !ok2 || !ok3 {
		return math.NaN()
	}
	return max(value-low, high-value)
}

func textsOf(rows [][]api.Value) [][]string {
	all := make([][]string, len(rows))
	for i, row := range rows {
		all[i] = texts(row)
	}
	return all
}

// floatOf is a number, or the seconds of an interval.
func floatOf(text string) (float64, bool) {
	f, err := strconv.ParseFloat(text, 64)
	if err == nil {
		return f, !math.IsNaN(f) && !math.IsInf(f, 0)
	}
	var days, hours, minutes int
	var seconds float64
	if before, after, ok := strings.Cut(strings.Replace(text, "days", "day", 1), " day"); ok {
		if days, err = strconv.Atoi(before); err != nil {
			return 0, false
		}
		text = strings.TrimSpace(after)
	}
	if _, err := fmt.Sscanf(text, "%d:%d:%f", &hours, &minutes, &seconds); err != nil {
		return 0, false
	}
	return float64(days*24+hours)*3600 + float64(minutes)*60 + seconds, true
}

// spelled is one spelling of what PostgreSQL and the gateway write in two: blanks that pad, numbers, truth values, times.
func spelled(text string) string {
	text = strings.TrimRight(text, " ")
	switch text {
	case "true":
		return "t"
	case "false":
		return "f"
	}
	if n, ok := number(text); ok {
		return n.RatString()
	}
	if len(text) >= len("2006-01-02 15:04:05") && text[4] == '-' && text[10] == 'T' {
		text = text[:10] + " " + text[11:]
	}
	for _, zone := range []string{"Z", "+00:00", "+00"} {
		text = strings.TrimSuffix(text, zone)
	}
	return strings.TrimSuffix(text, " 00:00:00")
}

// median is 1, the largest error that counts, of nothing.
func median(of []float64) float64 {
	if len(of) == 0 {
		return 1
	}
	slices.Sort(of)
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}

// realLines has a line for each question of a family, and how often each code refused one.
func realLines(family string, verdicts []realVerdict) string {
	var lines strings.Builder
	codes := map[string]int{}
	for _, v := range verdicts {
		fmt.Fprintf(&lines, "%s %s: ", family, v.id)
		if !v.answered() {
			codes[v.refused]++
			fmt.Fprintf(&lines, "%s: %s\n", v.refused, v.why)
			continue
		}
		verdict := "answered"
		if v.useful() {
			verdict = "useful"
		}
		fmt.Fprintf(&lines, "%s; %d rows, %d missing, %d superfluous; error %.1f %%, by law %.1f %%; ", verdict, v.rows, v.missing, v.superfluous,
			100*v.measured, 100*v.foreseen)
		fmt.Fprintf(&lines, "%s; %.1f s\n", cmp.Or(v.differs, "equal"), v.took.Seconds())
	}
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		fmt.Fprintf(&lines, "%s refused with %s: %d\n", family, code, codes[code])
	}
	return lines.String() + "\n"
}

// realKept has the questions of a family that the ratchet names.
type realKept struct {
	Answered []string `json:"answered"`
	Useful   []string `json:"useful"`
}

func readRatchet(t *testing.T) map[string]realKept {
	t.Helper()
	kept := map[string]realKept{}
	if err := json.Unmarshal([]byte(read(t, realRatchet)), &kept); err != nil {
		t.Fatal(err)
	}
	return kept
}

func ratchetOf(verdicts []realVerdict) realKept {
	var found realKept
	for _, v := range verdicts {
		if v.answered() {
			found.Answered = append(found.Answered, v.id)
		}
		if v.useful() {
			found.Useful = append(found.Useful, v.id)
		}
	}
	return found
}

// against is the ratchet with what was found; what left it fails the test unless it is rewritten. An answer that was useful has left where
// the law of its noise says twice what is useful, in the best of the draws.
func (k realKept) against(t *testing.T, family string, found realKept, verdicts []realVerdict) realKept {
	t.Helper()
	near := found.Useful
	for _, v := range verdicts {
		if v.answered() && v.atLeast <= 2*realUseful {
			near = append(slices.Clip(near), v.id)
		}
	}
	for _, list := range []struct {
		what                string
		kept, found, enough []string
	}{
		{"answered", k.Answered, found.Answered, found.Answered},
		{"useful", k.Useful, found.Useful, near},
	} {
		for _, id := range list.kept {
			if !slices.Contains(list.enough, id) && !*realRewrite {
				t.Errorf("%s %s is no longer %s", family, id, list.what)
			}
		}
		for _, id := range list.found {
			if !slices.Contains(list.kept, id) {
				t.Logf("%s %s is %s now: -real-rewrite writes it into the ratchet", family, id, list.what)
			}
		}
	}
	return found
}

// TestRealJudges: what is missing, superfluous, left out by a bound, and drowned in noise, of an answer that was made up.
func TestRealJudges(t *testing.T) {
	t.Parallel()
	answer := func(half int64, values map[string]int64) *api.QueryResponse {
		number := func(n int64) api.Value { return api.Number(strconv.FormatInt(n, 10)) }
		r := api.Result{Columns: []api.Column{{Name: "k", Kind: "key"}, {Name: "n", Kind: "aggregate"}}}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			n := values[key]
			r.Rows = append(r.Rows, []api.Value{api.Text(key), number(n)})
			r.Intervals = append(r.Intervals, []*api.Bounds{nil, {number(n - half), number(n + half)}})
		}
		return &api.QueryResponse{Result: r}
	}
	truth := [][]string{{"a   ", "100"}, {"b", "50"}, {"c", "10"}, {"zero", "0"}}
	exact := answer(1, map[string]int64{"a": 101, "b": 40, "d": 7, "zero": 0})
	var draws []*api.QueryResponse
	for i := range int64(realDraws) {
		draws = append(draws, answer(5+i, map[string]int64{"a": 103, "b": 41, "zero": 9}))
	}
	var got realVerdict
	got.judge(truth, exact, draws)
	// b is off by 10 since a bound left something out, and by a noise of 7 in the median of the draws, of 5 in the best.
	want := realVerdict{rows: 4, missing: 1, superfluous: 1, differs: `"b"  n is 40, not 50, ± 1`, measured: 0.18, foreseen: 0.34, atLeast: 0.3}
	if got != want || got.useful() {
		t.Errorf("got %+v, want %+v, which is not useful", got, want)
	}
}
