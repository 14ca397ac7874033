package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
	"noisegate.example/mechanisms"
)

// boundsCommand buys what a policy's bounds would keep: histograms of units, in which each unit counts once. They are ordinary questions,
// charged to the caller, and replayed.
type boundsCommand struct {
	Table    string   `arg:"" help:"The table."`
	Dataset  string   `help:"The dataset; may be left out when there is only one." placeholder:"NAME"`
	Epsilon  string   `required:"" help:"Price in epsilon of all histograms together, in equal parts." placeholder:"E"`
	By       []string `help:"Also the groups of a unit, by these columns: what max_groups would keep." placeholder:"COLUMN"`
	Column   []string `help:"Also a unit's smallest and largest value of this column, of whole numbers or numerics: what its bounds would keep. Repeat it for more." placeholder:"COLUMN" sep:"none"`
	Estimate bool     `help:"Print the questions and ask nothing."`
	gatewayFlags
}

// histogram is one question about units: how many have a value up to each edge. Its answer has one noisy count a bin.
type histogram struct {
	about  string    // what is counted
	bounds string    // what an edge is as a bound: a setting of a policy, or least or most of column
	column string    // of least and most
	line   string    // of a policy, with %s for the bound
	rows   string    // SELECT of one row a unit, with the value as v
	edges  []float64 // rising; beyond the last is one bin more
	low    bool      // the bound is a lower one: what is kept lies above an edge
}

// boundsFormat names what --json prints. The console reads it: gateway/console/src/report.ts.
const boundsFormat = "noisegate bounds/1"

// boundsReport is what was bought, with every bound.
type boundsReport struct {
	Format     string           `json:"format"`
	Dataset    string           `json:"dataset"`
	Schema     string           `json:"schema"`
	Table      string           `json:"table"`
	By         []string         `json:"by,omitempty"`
	Epsilon    api.Decimal      `json:"epsilon"` // the price of all histograms together
	Histograms []boundsReported `json:"histograms"`
}

type boundsReported struct {
	About     string      `json:"about"`
	Bounds    string      `json:"bounds"`
	Column    string      `json:"column,omitempty"`
	Policy    string      `json:"policy,omitempty"` // the line that is proposed
	Kept      []kept      `json:"kept"`
	ReleaseID string      `json:"release_id"`
	Epsilon   api.Decimal `json:"epsilon"`
	Spent     api.Amounts `json:"spent"` // by this run: zero when replayed
}

// The edges of histograms: of numbers of rows and groups, whose bins are at most half as wide as they are large, and of values, which
// grow by 2 to 2.5.
const (
	maxCountEdge = 1 << 20
	maxDecade    = 9  // values up to 10⁹
	leastDecade  = -2 // of what is no whole number

	boundsConfidence mechanisms.Confidence = 0.95
)

func countEdges() (edges []float64) {
	for n := 1; n <= maxCountEdge; n = max(n+1, n*3/2) {
		edges = append(edges, float64(n))
	}
	return edges
}

func valueEdges(columnType string) (edges []float64) {
	least := leastDecade
	if slices.Contains([]string{"smallint", "integer", "bigint"}, columnType) {
		least = 0
	}
	for decade := least; decade <= maxDecade; decade++ {
		for _, digit := range []float64{1, 2, 5} {
			if edge := digit * math.Pow10(decade); edge <= math.Pow10(maxDecade) {
				edges = append(edges, -edge, edge)
			}
		}
	}
	edges = append(edges, 0)
	slices.Sort(edges)
	return edges
}

func (c *boundsCommand) run(ctx context.Context, a *app) error {
	client, err := c.clientFor(ctx, a, &c.Dataset)
	if err != nil {
		return err
	}
	described, err := client.Dataset(ctx, c.Dataset)
	if err != nil {
		return a.refused(c.JSON, "", err)
	}
	t, err := c.table(described)
	if err != nil {
		return usage(err)
	}
	histograms, err := c.histograms(t)
	if err != nil {
		return usage(err)
	}
	price, err := mechanisms.ParseEpsilon(c.Epsilon)
	if err != nil {
		return usage(fmt.Errorf("--epsilon: %w", err))
	}
	price /= mechanisms.PicoEpsilon(len(histograms))
	var requests []api.QueryRequest
	for _, h := range histograms { // none is paid for if another one is refused
		request := api.QueryRequest{Dataset: c.Dataset, SQL: h.question(), Epsilon: api.Decimal(price.String()), Mechanism: "laplace"}
		if _, err := client.Estimate(ctx, request); err != nil {
			return a.refused(c.JSON, request.SQL, err)
		}
		requests = append(requests, request)
	}
	report := boundsReport{Format: boundsFormat, Dataset: c.Dataset, Schema: t.Schema, Table: t.Name, By: c.By,
		Epsilon: api.Decimal((price * mechanisms.PicoEpsilon(len(histograms))).String())}
	for i, h := range histograms {
		request := requests[i]
		if c.Estimate {
			fmt.Fprintf(a.Out, "%s, epsilon %s:\n%s\n\n", h.about, request.Epsilon, request.SQL)
			continue
		}
		answer, err := client.Query(ctx, request, "")
		if err != nil {
			return a.refused(c.JSON, request.SQL, err)
		}
		list, err := h.shares(answer, price)
		if err != nil {
			return err
		}
		if !c.JSON {
			a.showBounds(h, list, answer)
			continue
		}
		_, line := h.proposed(list)
		report.Histograms = append(report.Histograms, boundsReported{About: h.about, Bounds: h.bounds, Column: h.column, Policy: line, Kept: list,
			ReleaseID: answer.ReleaseID, Epsilon: request.Epsilon, Spent: answer.Spent})
	}
	if c.JSON && !c.Estimate {
		return printJSON(a.Out, report)
	}
	return nil
}

// table is the one that is asked about.
func (c *boundsCommand) table(d *api.Dataset) (*api.Table, error) {
	i := slices.IndexFunc(d.Tables, func(t api.Table) bool { return t.Name == c.Table || t.Schema+"."+t.Name == c.Table })
	switch {
	case i < 0:
		return nil, fmt.Errorf("there is no table %s in %s", c.Table, c.Dataset)
	case d.Tables[i].Public || d.Tables[i].Unit == nil:
		return nil, fmt.Errorf("%s is public: its columns have the bounds of its rows", c.Table)
	case d.Tables[i].Unit.Kind == "path":
		return nil, fmt.Errorf("rows of %s belong to a unit through %s: only tables that hold the unit's own column have histograms", c.Table,
			d.Tables[i].Unit.To)
	}
	return &d.Tables[i], nil
}

// histograms are the questions about a table.
func (c *boundsCommand) histograms(t *api.Table) ([]histogram, error) {
	unit, from := pgx.Identifier{t.Unit.Column}.Sanitize(), pgx.Identifier{t.Schema, t.Name}.Sanitize()
	grouped := func(value, from string) string {
		return fmt.Sprintf("SELECT %s, %s AS v FROM %s GROUP BY %s", unit, value, from, unit)
	}
	var list []histogram
	if t.Unit.Kind != "row" {
		list = append(list, histogram{about: "rows of one " + t.Unit.Column, bounds: "max_rows_total", line: "max_rows_total: %s",
			rows: grouped("count(*)", from), edges: countEdges()})
	}
	if len(c.By) > 0 {
		columns := []string{unit}
		for _, name := range c.By {
			columns = append(columns, pgx.Identifier{name}.Sanitize())
		}
		keys := strings.Join(columns, ", ")
		list = append(list, histogram{about: "groups of one " + t.Unit.Column + " by " + strings.Join(c.By, ", "),
			bounds: "max_groups", line: "max_groups: %s",
			rows:  grouped("count(*)", fmt.Sprintf("(SELECT %s FROM %s GROUP BY %s) AS g", keys, from, keys)),
			edges: countEdges()})
		list = append(list, histogram{about: "rows of one " + t.Unit.Column + " in one of these groups, at most",
			bounds: "max_rows", line: "max_rows: %s",
			rows:  grouped("max(n)", fmt.Sprintf("(SELECT %s, count(*) AS n FROM %s GROUP BY %s) AS g", keys, from, keys)),
			edges: countEdges()})
	}
	for _, name := range c.Column {
		at := slices.IndexFunc(t.Columns, func(column api.TableColumn) bool { return column.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("there is no column %s in %s", name, c.Table)
		}
		column, edges := pgx.Identifier{name}.Sanitize(), valueEdges(t.Columns[at].Type)
		list = append(list,
			histogram{about: "smallest " + name + " of one " + t.Unit.Column, bounds: "least", column: name, line: name + ": {bounds: [%s, ...]}",
				rows: grouped("min("+column+")", from), edges: edges, low: true},
			histogram{about: "largest " + name + " of one " + t.Unit.Column, bounds: "most", column: name, line: name + ": {bounds: [..., %s]}",
				rows: grouped("max("+column+")", from), edges: edges})
	}
	if len(list) == 0 {
		return nil, errors.New("each unit has one row here: name a --column")
	}
	return list, nil
}

// question counts units by bins: bin i are those with a value up to edge i, and above the one before it.
func (h histogram) question() string {
	var b strings.Builder
	b.WriteString("SELECT CASE WHEN v IS NULL THEN -1")
	for i, edge := range h.edges {
		operator := "<="
		if h.low { // a lower bound keeps what equals it
			operator = "<"
		}
		fmt.Fprintf(&b, " WHEN v %s %s THEN %d", operator, boundText(edge), i)
	}
	fmt.Fprintf(&b, " ELSE %d END AS bin, count(*) AS units FROM (%s) AS u GROUP BY 1", len(h.edges), h.rows)
	return b.String()
}

// kept is what a bound keeps.
type kept struct {
	Bound float64 `json:"bound"`
	Share float64 `json:"share"` // of units that it keeps whole
	Low   float64 `json:"low"`   // ... with an interval of 95 %
	High  float64 `json:"high"`
}

// shares are what each edge would keep as a bound. The units that it would not keep are those in the bins beyond it: for bounds that
// keep nearly all, few bins.
func (h histogram) shares(answer *api.QueryResponse, price mechanisms.PicoEpsilon) ([]kept, error) {
	noise, err := mechanisms.NewLaplace(mechanisms.LaplaceParameters{L1: big.NewInt(1), Epsilon: price})
	if err != nil {
		return nil, err
	}
	bins := make([]float64, len(h.edges)+1)
	total := 0.0
	for _, row := range answer.Rows {
		bin, errBin := strconv.Atoi(row[0].String())
		units, errUnits := strconv.ParseFloat(row[1].String(), 64)
		if err := errors.Join(errBin, errUnits); err != nil || bin >= len(bins) {
			return nil, fmt.Errorf("the gateway answered another question: %w", err)
		}
		if bin >= 0 {
			bins[bin] = units
			total += units
		}
	}
	if total = max(total, 1); h.low { // bin i+1 begins at edge i
		slices.Reverse(bins)
	}
	list := make([]kept, len(h.edges))
	beyond, terms := 0.0, []mechanisms.Term(nil)
	for i := len(h.edges) - 1; i >= 0; i-- {
		beyond += bins[i+1]
		terms = append(terms, mechanisms.Term{Noise: noise, Weight: big.NewRat(1, 1)})
		wide := mechanisms.SumHalfWidth(terms, boundsConfidence)
		share := func(out float64) float64 { return max(0, min(1, 1-out/total)) }
		list[i] = kept{Bound: h.edges[i], Share: share(beyond), Low: share(beyond + wide), High: share(beyond - wide)}
		if h.low {
			list[i].Bound = h.edges[len(h.edges)-1-i]
		}
	}
	return list, nil
}

// wanted are the shares of units for which a bound is proposed.
func wanted() []float64 { return []float64{0.5, 0.9, 0.99, 0.999} }

// proposed are the narrowest bounds whose intervals reach each share, as places in the list, and a line of a policy.
func (h histogram) proposed(list []kept) (places []int, line string) {
	for _, share := range wanted() {
		i := slices.IndexFunc(list, func(k kept) bool { return k.High >= share })
		if i < 0 {
			break
		}
		if !slices.Contains(places, i) {
			places = append(places, i)
		}
		if share <= 0.99 {
			line = fmt.Sprintf(h.line, boundText(list[i].Bound))
		}
	}
	return places, line
}

func boundText(bound float64) string { return strconv.FormatFloat(bound, 'f', -1, 64) }

// showBounds prints the bounds that are proposed.
func (a *app) showBounds(h histogram, list []kept, answer *api.QueryResponse) {
	fmt.Fprintln(a.Out, h.about)
	t := &table{}
	t.header("bound", "keeps whole", "95 % interval")
	percent := func(share float64, to rounding) string { return to.text(new(big.Rat).SetFloat64(100*share), 1) + " %" }
	places, line := h.proposed(list)
	for _, i := range places {
		t.row(boundText(list[i].Bound), percent(list[i].Share, nearest), percent(list[i].Low, down)+" to "+percent(list[i].High, up))
	}
	t.write(a.Out)
	if line != "" {
		fmt.Fprintf(a.Out, " policy: %s\n", line)
	}
	fmt.Fprintf(a.Out, " %s\n\n", spendLine(answer))
}
