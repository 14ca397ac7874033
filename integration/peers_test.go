package integration

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/testfiles"
)

var (
	peersDraws   = flag.Int("peers", 0, "answers to each question that TestPeers draws from Noisegate, and at most from each peer; 0 skips it")
	peersSeconds = flag.Int("peers-seconds", 20, "how long TestPeers waits for the answers of a peer to one question (three at least)")
	peersOnly    = flag.String("peers-only", "", "what TestPeers asks: a regular expression of \"program question\"; the rest is kept")
)

const (
	peersFolder   = "testdata/peers"
	peersRecord   = "testdata/peers/record.json"
	peersPrograms = "../.cache/peers" // one Python environment for each peer, made by make peers
	comparison    = "../docs/comparison.md"
	noisegate     = "Noisegate"
)

// peerQuestion is a question of testdata/peers/questions.json. Bounds are those of one person: rows in a group, groups, and rows
// in all groups together.
type peerQuestion struct {
	ID      string   `json:"id"`
	Ask     string   `json:"ask"`
	SQL     string   `json:"sql"`
	Agg     string   `json:"agg"`
	Data    string   `json:"data"`
	Unit    string   `json:"unit"`
	Key     string   `json:"key"`
	Keys    []string `json:"keys"` // public; none: they are private
	Epsilon float64  `json:"epsilon"`
	Delta   float64  `json:"delta"`
	Rows    int64    `json:"rows"`
	Groups  int64    `json:"groups"`
	Total   int64    `json:"total"`
}

// peerError is how far one program's answers to one question are from the truth.
type peerError struct {
	Draws       int     `json:"draws,omitempty"`
	RMSE        float64 `json:"rmse,omitempty"`  // over all draws and groups that were shown
	SE          float64 `json:"se,omitempty"`    // its standard error
	Shown       float64 `json:"shown,omitempty"` // groups, in the mean; of private keys
	Unsupported string  `json:"unsupported,omitempty"`
}

// peerRecord is the last run of TestPeers.
type peerRecord struct {
	Date     string                          `json:"date"`
	Versions map[string]string               `json:"versions"`
	Errors   map[string]map[string]peerError `json:"errors"` // by question and program
	Latency  peerLatency                     `json:"latency"`
}

// answers of one program to one question: numbers by key.
type answers []map[string]float64

// TestPeers asks Noisegate and its peers the questions of testdata/peers/questions.json at the same guarantee, and writes how far the
// answers are off into docs/comparison.md. It fails where a peer cannot be run, not where it is better: that is for the page to say.
func TestPeers(t *testing.T) {
	if *peersDraws == 0 {
		return // it asks other programs: make peers
	}
	// alone: peers take all processors
	questions := peerQuestions(t, "questions.json")
	s := newOwnStack(t, "peers", peerData(t)...)
	folder := t.TempDir()
	s.exec(t, "postgres", "CREATE DATABASE peers")
	for name, query := range peerTables() {
		s.exportCSV(t, name, query, filepath.Join(folder, name+".csv"))
	}
	truths := map[string]map[string]float64{}
	for _, q := range questions {
		truths[q.ID] = s.truth(t, q)
	}
	record := readRecord(t)
	record.Date = time.Now().UTC().Format(time.DateOnly)
	add := func(program string, q peerQuestion, e peerError) {
		if record.Errors[q.ID] == nil {
			record.Errors[q.ID] = map[string]peerError{}
		}
		record.Errors[q.ID][program] = e
	}
	save := func() { record.save(t) }
	scripts, err := filepath.Glob(peersFolder + "/*_peer.py")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no script of a peer: %v", err)
	}
	only := regexp.MustCompile(*peersOnly)
	var mu sync.Mutex // of record
	var peers sync.WaitGroup
	places := make(chan struct{}, 2) // peers at once
	for _, script := range scripts {
		program := strings.TrimSuffix(filepath.Base(script), "_peer.py")
		asked := slices.DeleteFunc(slices.Clone(questions), func(q peerQuestion) bool { return !only.MatchString(program + " " + q.ID) })
		if len(asked) == 0 {
			continue
		}
		peers.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			version, all, err := s.askPeer(t, program, "questions.json", folder, asked)
			if err != nil {
				t.Errorf("%s: %v", program, err)
			}
			mu.Lock()
			defer mu.Unlock()
			record.Versions[program] = cmp.Or(version, record.Versions[program])
			for _, q := range asked {
				switch answer := all[q.ID]; {
				case answer.Unsupported != "":
					add(program, q, peerError{Unsupported: answer.Unsupported})
				case len(answer.Answers) > 0:
					add(program, q, errorOf(q, answer.Answers, truths[q.ID]))
				default:
					t.Errorf("%s has no answer to %q: %s", program, q.ID, answer.Failed)
				}
			}
			save()
		})
	}
	for _, q := range questions {
		if only.MatchString("noisegate " + q.ID) {
			e := errorOf(q, s.askNoisegate(t, q), truths[q.ID])
			mu.Lock()
			add(noisegate, q, e)
			mu.Unlock()
		}
	}
	peers.Wait()
	save()
}

// TestComparisonPage holds docs/comparison.md to the record of the last run: what it shows was measured.
func TestComparisonPage(t *testing.T) {
	t.Parallel()
	page := read(t, comparison)
	if got := readRecord(t).page(t, page); got != page {
		t.Error("the tables of docs/comparison.md are not those of " + peersRecord + ": make peers writes both")
	}
}

// save writes the record, and the tables of docs/comparison.md.
func (r peerRecord) save(t *testing.T) {
	t.Helper()
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	write(t, peersRecord, string(text)+"\n")
	write(t, comparison, r.page(t, read(t, comparison)))
}

// page is docs/comparison.md with the record's tables.
func (r peerRecord) page(t *testing.T, page string) string {
	t.Helper()
	page = withTable(t, page, "peers", tableOf(peerQuestions(t, "questions.json"), r))
	return withTable(t, page, "latency", r.Latency.table(peerQuestions(t, "latency.json")))
}

func peerQuestions(t *testing.T, file string) []peerQuestion {
	t.Helper()
	var questions []peerQuestion
	if err := json.Unmarshal([]byte(read(t, filepath.Join(peersFolder, file))), &questions); err != nil {
		t.Fatal(err)
	}
	return questions
}

func readRecord(t *testing.T) peerRecord {
	t.Helper()
	r := peerRecord{Versions: map[string]string{}, Errors: map[string]map[string]peerError{}}
	text, err := os.ReadFile(peersRecord)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return r
}

// peerData are the data sets, with budgets for all draws and bounds that each question tightens.
func peerData(t *testing.T) []dataset {
	t.Helper()
	sets := []dataset{census(t), pums(t), pagila(t), events(t)}
	for i := range sets {
		p := &sets[i].policy
		*p = strings.ReplaceAll(*p, "max_groups: 8", "max_groups: 12")
	}
	return sets
}

// events are people with many rows.
func events(t *testing.T) dataset {
	t.Helper()
	file := testfiles.Fetched(t, "data/events/events.csv.gz")
	var keys []string
	for key := range 40 {
		keys = append(keys, fmt.Sprint(key))
	}
	return dataset{name: "events", policy: fmt.Sprintf(`version: 1
dataset: events
neighbours: add-remove
tables:
  events:
    unit: {column: uid}
    max_rows: 20
    max_groups: 20
    columns:
      g40:   {domain: [%s]}
      value: {bounds: [0, 100]}
budgets:
  - {dataset: true, form: approx, epsilon: 1000000, delta: 1e-3}
  - {group: analysts, per: analyst, form: approx, epsilon: 1000, delta: 1e-4}
`, strings.Join(keys, ", ")),
		load: func(ctx context.Context, conn *pgx.Conn) error {
			if _, err := conn.Exec(ctx, "CREATE TABLE events (event_id int PRIMARY KEY, uid int, g2 int, g40 int, value int)"); err != nil {
				return err
			}
			f, err := os.Open(file)
			if err != nil {
				return err
			}
			defer f.Close()
			rows, err := gzip.NewReader(f)
			if err != nil {
				return err
			}
			_, err = conn.PgConn().CopyFrom(ctx, rows, "COPY events FROM STDIN (FORMAT csv, HEADER)")
			return err
		}}
}

// peerDatabase is the database of a data set that scripts know by another name.
func peerDatabase(data string) string {
	return cmp.Or(map[string]string{"adult": "census", "rentals": "pagila"}[data], data)
}

// peerTables are the columns that peers are given, by data set.
func peerTables() map[string]string {
	return map[string]string{
		"adult": `SELECT person_id, age, hours_per_week, marital_status, education, coalesce(native_country, 'NULL') AS native_country
			FROM people`,
		"pums":    `SELECT pid, educ, income FROM pums`,
		"rentals": `SELECT customer_id, date_trunc('month', rental_date)::date::text AS rented FROM rental`,
		"events":  `SELECT uid, g40, value FROM events`,
	}
}

// exportCSV writes a query's rows to a file, and to a table of the database peers.
func (s *stack) exportCSV(t *testing.T, data, query, file string) {
	t.Helper()
	var rows bytes.Buffer
	from := s.superuser(t, peerDatabase(data)).PgConn()
	if _, err := from.CopyTo(t.Context(), &rows, "COPY ("+query+") TO STDOUT (FORMAT csv, HEADER)"); err != nil {
		t.Fatal(err)
	}
	write(t, file, rows.String())
	conn := s.superuser(t, "peers")
	head, _, _ := strings.Cut(rows.String(), "\n")
	var columns []string
	for name := range strings.SplitSeq(head, ",") {
		kind := "int"
		if slices.Contains([]string{"marital_status", "education", "native_country", "rented"}, name) {
			kind = "text"
		}
		columns = append(columns, name+" "+kind)
	}
	if err := execAll(t.Context(), conn, fmt.Sprintf("CREATE TABLE %s (%s)", data, strings.Join(columns, ", "))); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.PgConn().CopyFrom(t.Context(), &rows, "COPY "+data+" FROM STDIN (FORMAT csv, HEADER)"); err != nil {
		t.Fatal(err)
	}
}

// truth is what plain SQL says, over all rows.
func (s *stack) truth(t *testing.T, q peerQuestion) map[string]float64 {
	t.Helper()
	sql := strings.ReplaceAll(q.SQL, "median(age)", "percentile_cont(0.5) WITHIN GROUP (ORDER BY age)")
	truth := map[string]float64{}
	for _, key := range q.Keys {
		truth[key] = 0
	}
	for _, row := range s.plain(t, peerDatabase(q.Data), sql) {
		key, value := keyAndValue(t, row)
		truth[key] = value
	}
	return truth
}

// keyAndValue reads a row of a key, if there is one, and a number. Of a time, the date is the key.
func keyAndValue(t *testing.T, row []string) (string, float64) {
	t.Helper()
	key := ""
	if len(row) == 2 {
		key = regexp.MustCompile(`[ T]00:00:00.*$`).ReplaceAllString(strings.Replace(row[0], null, "NULL", 1), "")
	}
	var value float64
	if _, err := fmt.Sscan(row[len(row)-1], &value); err != nil {
		t.Fatalf("%q: %v", row, err)
	}
	return key, value
}

// request is the question at its guarantee and bounds.
func (q peerQuestion) request() api.QueryRequest {
	request := api.QueryRequest{Dataset: peerDatabase(q.Data), SQL: q.SQL, Epsilon: api.Decimal(fmt.Sprint(q.Epsilon))}
	if q.Delta > 0 {
		request.Delta = api.Decimal(fmt.Sprint(q.Delta))
	}
	if q.Unit != "" {
		request.MaxRows = &q.Rows
		if q.Key != "" {
			request.MaxGroups = &q.Groups
		}
		if q.Total > 0 {
			request.MaxRowsTotal = &q.Total
		}
	}
	return request
}

// askNoisegate draws answers, each as a new analyst: the same analyst would be given the first one again.
func (s *stack) askNoisegate(t *testing.T, q peerQuestion) answers {
	t.Helper()
	request := q.request()
	draws := *peersDraws
	if q.Delta > 0 {
		draws = min(draws, 240) // the dataset's δ is 1e-3 at most
	}
	var all answers
	for i := range draws {
		answer, err := s.peerClient(t, i).Query(t.Context(), request, "")
		if err != nil {
			t.Fatalf("%s: %v", q.ID, err)
		}
		one := map[string]float64{}
		for _, row := range answer.Rows {
			key, value := keyAndValue(t, texts(row))
			one[key] = value
		}
		all = append(all, one)
	}
	return all
}

// peerClient is the client of the i-th analyst.
func (s *stack) peerClient(t *testing.T, i int) *api.Client {
	t.Helper()
	name := fmt.Sprintf("draw-%d", i)
	if s.tokens == nil {
		s.tokens = map[string]string{}
	}
	if s.tokens[name] == "" {
		s.tokens[name] = s.token(t, name, "analyst")
	}
	return api.NewClient(s.url, s.tokens[name])
}

// peerAnswer is a line that a peer's script prints.
type peerAnswer struct {
	Version     string    `json:"version"`
	ID          string    `json:"id"`
	Answers     answers   `json:"answers"`
	Seconds     []float64 `json:"seconds"` // that each answer took
	Unsupported string    `json:"unsupported"`
	Failed      string    `json:"failed"`
}

// askPeer runs a peer's script in its own environment.
func (s *stack) askPeer(t *testing.T, program, questions, folder string, asked []peerQuestion) (string, map[string]peerAnswer, error) {
	t.Helper()
	here, err := filepath.Abs(peersFolder)
	if err != nil {
		return "", nil, err
	}
	python, err := filepath.Abs(filepath.Join(peersPrograms, program, "bin/python"))
	if err != nil {
		return "", nil, err
	}
	args := []string{filepath.Join(here, program+"_peer.py"), filepath.Join(here, questions), folder,
		s.dsn(pgserver.Superuser, "peers"), fmt.Sprint(*peersDraws), fmt.Sprint(*peersSeconds)}
	for _, q := range asked {
		args = append(args, q.ID)
	}
	cmd := exec.CommandContext(t.Context(), python, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("%w\n%s", err, errs.String()[max(0, errs.Len()-2000):])
	}
	version, all := "", map[string]peerAnswer{}
	for line := range bytes.Lines(out.Bytes()) {
		var said peerAnswer
		if bad := json.Unmarshal(line, &said); bad != nil {
			return version, all, errors.Join(err, fmt.Errorf("it printed %.200q: %w", line, bad))
		}
		version = cmp.Or(version, said.Version)
		all[said.ID] = said
	}
	return version, all, err
}

// errorOf is the root mean square error over draws and shown groups; of public keys, a group that an answer lacks is 0.
func errorOf(q peerQuestion, all answers, truth map[string]float64) peerError {
	squares := make([]float64, len(all)) // the mean of each draw: groups of one draw are not independent
	shown := 0.0
	for i, answer := range all {
		keys := q.Keys
		if q.Key == "" {
			keys = []string{""}
		}
		if q.Key != "" && keys == nil {
			for key := range answer {
				keys = append(keys, key)
			}
		}
		for _, key := range keys {
			d := answer[key] - truth[key]
			squares[i] += d * d / float64(len(keys))
		}
		shown += float64(len(keys)) / float64(len(all))
	}
	n, mean, deviation := float64(len(squares)), 0.0, 0.0
	for _, x := range squares {
		mean += x / n
	}
	for _, x := range squares {
		deviation += (x - mean) * (x - mean) / (n - 1)
	}
	e := peerError{Draws: len(all), RMSE: math.Sqrt(mean)}
	if mean > 0 {
		e.SE = math.Sqrt(deviation/n) / (2 * e.RMSE)
	}
	if q.Key != "" && q.Keys == nil {
		e.Shown = shown
	}
	return e
}

func withTable(t *testing.T, page, name, table string) string {
	t.Helper()
	from, to := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->\n"
	head, rest, ok := strings.Cut(page, from)
	_, tail, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("%s has no place between %q and %q", comparison, from, to)
	}
	return head + from + table + to + tail
}

// peerName is a peer as its script is called, and as the page calls it.
type peerName struct{ program, name string }

func peerNames() []peerName {
	return []peerName{{"opendp", "OpenDP"}, {"pipelinedp", "PipelineDP"}, {"smartnoise", "SmartNoise SQL"}, {"tumult", "Tumult Analytics"},
		{"diffprivlib", "diffprivlib"}, {"qrlew", "Qrlew"}}
}

// weaker are the peers whose answers have not the guarantee that the others give: they are shown, and never the best peer.
func weaker() []string { return []string{"qrlew"} }

// tableOf is what the page shows of a run: errors by question and program, then what each peer cannot be asked.
func tableOf(questions []peerQuestion, record peerRecord) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Run of %s:\n%s.\n\n| question | ε, δ | bounds | Noisegate |", record.Date, strings.Join(versions(record), ", "))
	for _, p := range peerNames() {
		fmt.Fprintf(&b, " %s |", p.name)
	}
	fmt.Fprintf(&b, " to the best peer |\n|%s\n", strings.Repeat("---|", len(peerNames())+5))
	for _, q := range questions {
		errs := record.Errors[q.ID]
		fmt.Fprintf(&b, "| %s: %s | %s | %s | %s |", q.Data, q.Ask, guaranteeOf(q), boundsOf(q), errs[noisegate].cell())
		for _, p := range peerNames() {
			cell := errs[p.program].cell()
			if slices.Contains(weaker(), p.program) && errs[p.program].Draws > 0 {
				cell += " *"
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		fmt.Fprintf(&b, " %s |\n", verdictOf(errs))
	}
	b.WriteString("\n| peer | cannot be asked | because |\n|---|---|---|\n")
	for _, p := range peerNames() {
		var reasons []string
		asks := map[string][]string{}
		for _, q := range questions {
			if why := record.Errors[q.ID][p.program].Unsupported; why != "" {
				if asks[why] == nil {
					reasons = append(reasons, why)
				}
				asks[why] = append(asks[why], q.ID)
			}
		}
		for _, why := range reasons {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", p.name, strings.Join(asks[why], "; "), why)
		}
	}
	return b.String()
}

func versions(record peerRecord) []string {
	var all []string
	for _, p := range peerNames() {
		if v := record.Versions[p.program]; v != "" {
			all = append(all, v)
		}
	}
	return all
}

func guaranteeOf(q peerQuestion) string {
	if q.Delta == 0 {
		return fmt.Sprint(q.Epsilon)
	}
	return fmt.Sprintf("%v, %v", q.Epsilon, q.Delta)
}

func boundsOf(q peerQuestion) string {
	switch {
	case q.Unit == "":
		return "1 row"
	case q.Total > 0:
		return fmt.Sprintf("%d rows in all", q.Total)
	case q.Key == "":
		return fmt.Sprintf("%d rows", q.Rows)
	}
	return fmt.Sprintf("%d rows x %d groups", q.Rows, q.Groups)
}

// cell is an error as the page shows it.
func (e peerError) cell() string {
	switch {
	case e.Unsupported != "":
		return "-"
	case e.Draws == 0:
		return "not run"
	}
	cell := fmt.Sprintf("%.3g ± %.2g", e.RMSE, e.SE)
	if e.RMSE >= 1000 {
		cell = fmt.Sprintf("%.0f ± %.0f", e.RMSE, e.SE)
	}
	if e.Shown > 0 {
		cell += fmt.Sprintf(" (%.1f groups)", e.Shown)
	}
	return cell
}

// rough is 0 where the standard error is small enough to call a peer the best, else how large it is.
func (e peerError) rough() float64 {
	if e.Draws >= 10 && e.SE <= mostRough*e.RMSE || e.SE <= mostRoughFew*e.RMSE {
		return 0
	}
	return e.SE / e.RMSE
}

// mostAbove is how far Noisegate may be above the best peer with the same guarantee.
const mostAbove = 1.05

// mostRough is the largest standard error, as a share of the error, with which a peer may be the best, and the same with fewer than
// ten draws, whose standard error is itself rough: of several rough figures the smallest is small by chance.
const (
	mostRough    = 0.15
	mostRoughFew = 0.05
)

// verdictOf compares Noisegate with the best peer that gives the same guarantee: the ratio and its standard error, and whether it is
// above what is allowed by more than two of these.
func verdictOf(errs map[string]peerError) string {
	ours, best, name := errs[noisegate], peerError{}, ""
	for _, p := range peerNames() {
		e := errs[p.program]
		if e.Draws == 0 || slices.Contains(weaker(), p.program) {
			continue
		}
		if name == "" || e.rough() < best.rough() || e.rough() == best.rough() && e.RMSE < best.RMSE {
			best, name = e, p.name
		}
	}
	switch {
	case ours.Draws == 0:
		return "not asked"
	case name == "":
		return "no peer"
	case best.RMSE == 0 && ours.RMSE == 0:
		return "both exact"
	case best.RMSE == 0:
		return "**above** (" + name + " is exact)"
	}
	ratio := ours.RMSE / best.RMSE
	se := 0.0
	if ours.RMSE > 0 {
		se = ratio * math.Hypot(ours.SE/ours.RMSE, best.SE/best.RMSE)
	}
	text := fmt.Sprintf("%.2f ± %.2f (%s)", ratio, se, name)
	switch {
	case ratio > mostAbove+2*se:
		return "**" + text + " above**"
	case ratio > mostAbove:
		return text + ", within sampling error"
	}
	return text
}

// TestPeerErrors: a public group that an answer lacks is 0, a private one is not counted, and the standard error is that of draws.
func TestPeerErrors(t *testing.T) {
	t.Parallel()
	truth := map[string]float64{"a": 10, "b": 20}
	public := errorOf(peerQuestion{Key: "k", Keys: []string{"a", "b"}}, answers{{"a": 12, "b": 20}, {"a": 10}}, truth)
	// Squares of the draws: (4+0)/2 and (0+400)/2. Their mean is 101, its standard error 99.
	if want := (peerError{Draws: 2, RMSE: math.Sqrt(101), SE: 99 / (2 * math.Sqrt(101))}); public != want {
		t.Errorf("public keys: got %+v, want %+v", public, want)
	}
	private := errorOf(peerQuestion{Key: "k"}, answers{{"a": 12, "b": 20}, {"a": 10}}, truth)
	if want := (peerError{Draws: 2, RMSE: 1, SE: 0.5, Shown: 1.5}); private != want {
		t.Errorf("private keys: got %+v, want %+v", private, want)
	}
	of := func(rmse, se float64) peerError { return peerError{Draws: 100, RMSE: rmse, SE: se} }
	for want, errs := range map[string]map[string]peerError{
		"2.00 ± 0.57 (OpenDP), within sampling error": {noisegate: of(2, 0.4), "opendp": of(1, 0.2), "tumult": of(0.5, 0.2)},
		"**2.00 ± 0.14 (OpenDP) above**":              {noisegate: of(2, 0.1), "opendp": of(1, 0.05), "qrlew": of(0.5, 0)},
		"**above** (OpenDP is exact)":                 {noisegate: of(2, 0.1), "opendp": of(0, 0)},
		"no peer":                                     {noisegate: of(2, 0.1), "qrlew": of(0.5, 0)},
	} {
		if got := verdictOf(errs); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
