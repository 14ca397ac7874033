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
	about string    // what is counted
	line  string    // of a policy, with %s for the bound
	rows  string    // SELECT of one row a unit, with the value as v
	edges []float64 // rising; beyond the last is one bin more
	low   bool      // the bound is a lower one: what is kept lies above an edge
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
	histograms, err := c.histograms(described)
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
	var answers []*api.QueryResponse
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
		if answers = append(answers, answer); !c.JSON {
			if err := a.showBounds(h, answer, price); err != nil {
				return err
			}
		}
	}
	if c.JSON && !c.Estimate {
		return printJSON(a.Out, answers)
	}
	return nil
}

// histograms are the questions about a table.
func (c *boundsCommand) histograms(d *api.Dataset) ([]histogram, error) {
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
	t := d.Tables[i]
	unit, from := pgx.Identifier{t.Unit.Column}.Sanitize(), pgx.Identifier{t.Schema, t.Name}.Sanitize()
	grouped := func(value, from string) string {
		return fmt.Sprintf("SELECT %s, %s AS v FROM %s GROUP BY %s", unit, value, from, unit)
	}
	var list []histogram
	if t.Unit.Kind != "row" {
		list = append(list, histogram{about: "rows of one " + t.Unit.Column, line: "max_rows_total: %s", rows: grouped("count(*)", from),
			edges: countEdges()})
	}
	if len(c.By) > 0 {
		columns := []string{unit}
		for _, name := range c.By {
			columns = append(columns, pgx.Identifier{name}.Sanitize())
		}
		keys := strings.Join(columns, ", ")
		list = append(list, histogram{about: "groups of one " + t.Unit.Column + " by " + strings.Join(c.By, ", "), line: "max_groups: %s",
			rows:  grouped("count(*)", fmt.Sprintf("(SELECT %s FROM %s GROUP BY %s) AS g", keys, from, keys)),
			edges: countEdges()})
		list = append(list, histogram{about: "rows of one " + t.Unit.Column + " in one of these groups, at most", line: "max_rows: %s",
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
			histogram{about: "smallest " + name + " of one " + t.Unit.Column, line: name + ": {bounds: [%s, ...]}",
				rows: grouped("min("+column+")", from), edges: edges, low: true},
			histogram{about: "largest " + name + " of one " + t.Unit.Column, line: name + ": {bounds: [..., %s]}",
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
		fmt.Fprintf(&b, " WHEN v %s %s THEN %d", operator, strconv.FormatFloat(edge, 'f', -1, 64), i)
	}
	fmt.Fprintf(&b, " ELSE %d END AS bin, count(*) AS units FROM (%s) AS u GROUP BY 1", len(h.edges), h.rows)
	return b.String()
}

// kept is what a bound keeps.
type kept struct {
	bound            float64
	share, low, high float64 // of units that it keeps whole, with an interval of 95 %
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
		list[i] = kept{bound: h.edges[i], share: share(beyond), low: share(beyond + wide), high: share(beyond - wide)}
		if h.low {
			list[i].bound = h.edges[len(h.edges)-1-i]
		}
	}
	return list, nil
}

// wanted are the shares of units for which a bound is proposed.
func wanted() []float64 { return []float64{0.5, 0.9, 0.99, 0.999} }

// showBounds prints the narrowest bound whose interval reaches each share, and a line of a policy.
func (a *app) showBounds(h histogram, answer *api.QueryResponse, price mechanisms.PicoEpsilon) error {
	list, err := h.shares(answer, price)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.Out, h.about)
	t := &table{}
	t.header("bound", "keeps whole", "95 % interval")
	percent := func(share float64, to rounding) string { return to.text(new(big.Rat).SetFloat64(100*share), 1) + " %" }
	proposed, last := "", -1
	for _, share := range wanted() {
		i := slices.IndexFunc(list, func(k kept) bool { return k.high >= share })
		if i < 0 {
			break
		}
		bound := strconv.FormatFloat(list[i].bound, 'f', -1, 64)
		if i != last {
			t.row(bound, percent(list[i].share, nearest), percent(list[i].low, down)+" to "+percent(list[i].high, up))
		}
		if last = i; share <= 0.99 {
			proposed = fmt.Sprintf(h.line, bound)
		}
	}
	t.write(a.Out)
	if proposed != "" {
		fmt.Fprintf(a.Out, " policy: %s\n", proposed)
	}
	fmt.Fprintf(a.Out, " %s\n\n", spendLine(answer))
	return nil
}
