package pgwire

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/statement"
)

// intervalColumns is noisegate.intervals for tools whose SQL cannot be edited: the ends of intervals are columns.
const intervalColumns = "columns"

func (c *session) wantsIntervals() bool { return c.settings.get(setIntervals) == intervalColumns }

// ask is the one way of a statement that names a table: the service answers it, at the session's price.
func (c *session) ask(ctx context.Context, p *portal) (*result, *refusal) {
	request, refused := c.settings.request(c.dataset, p.sql)
	if refused != nil {
		return nil, refused
	}
	if refused := c.asDescribed(ctx, p); refused != nil {
		return nil, refused
	}
	name := rand.Text()
	answer, err := c.query(ctx, gateway.Request{QueryRequest: request, Name: name})
	var made *result
	if err == nil {
		made, err = c.resultOf(p, answer)
		answer.Release()
	}
	if err != nil {
		refused = c.instead(ctx, p, request, err)
	}
	if refused == nil && err != nil { // a preview took the place of the refusal
		made = &result{columns: p.of.columns, tag: "SELECT"}
	}
	c.logLine(ctx, name, refused)
	return made, refused
}

// query asks the service. A client that hangs up before the charge is not charged.
func (c *session) query(ctx context.Context, request gateway.Request) (*gateway.Answer, error) {
	c.runs(request.Name)
	defer c.runs("")
	ctx, release := c.watched(ctx)
	defer release()
	return c.server.config.Questions.Query(ctx, c.who, request)
}

// asDescribed refuses a question whose columns have become others since they were told: its answer could not be sent. The text is
// PostgreSQL's, by which drivers prepare anew.
func (c *session) asDescribed(ctx context.Context, p *portal) *refusal {
	if c.names(); !p.of.described || p.of.version == c.exposed.version {
		return nil
	}
	now := *p.of
	if refused, _ := c.describeText(ctx, &now, p.sql, false); refused != nil {
		return refused
	}
	if !slices.Equal(now.columns, p.of.columns) {
		return refusef(stateUnsupported, "cached plan must not change result type").hinting("the policy has changed: prepare it again")
	}
	p.of.version = c.exposed.version
	return nil
}

// constants answers what names no table and reads none: the service knows SELECT 1, by which pools find out whether a connection
// lives. Everything else about names and types is for the catalog.
func (c *session) constants(ctx context.Context, p *portal) (*result, *refusal) {
	if p.of.one.Reads {
		return nil, noCatalog()
	}
	answer, err := c.server.config.Service.Query(ctx, c.who, gateway.Request{QueryRequest: api.QueryRequest{Dataset: c.dataset,
		SQL: p.sql, TimeZone: c.settings.zone()}})
	if err != nil {
		return nil, noCatalog()
	}
	defer answer.Release()
	made, err := c.resultOf(p, answer)
	if err != nil {
		return nil, refusalOf(err, nil)
	}
	return made, nil
}

// instead is what a client gets of an error: the refusal, or nil where the session asked for empty previews of tables.
func (c *session) instead(ctx context.Context, p *portal, request api.QueryRequest, err error) *refusal {
	if fault.CodeOf(err) == fault.CodeNotAggregate && c.settings.get(setPreview) == "empty" {
		if _, shown := c.describeText(ctx, p.of, request.SQL, true); shown == nil {
			c.warn(stateWarning, "rows of people are not shown; this table only looks empty (noisegate.preview)")
			return nil
		}
	}
	return refusalOf(err, p.place())
}

// logLine writes what became of a question: no SQL, no parameters, no duration.
func (c *session) logLine(ctx context.Context, id string, refused *refusal) {
	attrs := []slog.Attr{slog.String("request_id", id), slog.String("door", "pgwire"), slog.String("subject", c.who.Subject),
		slog.String("application", c.settings.get(setApplication))}
	level, state := slog.LevelInfo, ""
	if refused != nil {
		state = refused.state
		attrs = append(attrs, slog.String("code", refused.detail), slog.String("sqlstate", refused.state))
		if refused.state == stateInternal || refused.state == stateUnavailable {
			level = slog.LevelError
			attrs = append(attrs, slog.String("cause", fault.Cause(refused.cause)))
			refused.hint = strings.TrimSpace(refused.hint + " (request " + id + ")")
		}
	}
	c.server.config.Observe(state)
	c.server.config.Log.LogAttrs(ctx, level, "question", attrs...)
}

// resultOf makes rows of an answer, and says what it cost.
func (c *session) resultOf(p *portal, answer *gateway.Answer) (*result, error) {
	var released api.Result
	var err error
	answer.Work(func() {
		var shown json.RawMessage
		if shown, err = answer.Shown(); err == nil {
			err = json.Unmarshal(shown, &released)
		}
	})
	if err != nil {
		return nil, fault.Internal(err)
	}
	of, failed := *p.of, outerFailed(released)
	if failed { // these are other columns than the statement's, and no end has its own
		of.one.Ends = nil
	}
	cells := cellsOf(released.Columns, &of)
	r := &result{columns: columnsOf(cells), tag: "SELECT", rows: make([][]value, len(released.Rows))}
	if p.of.described { // what was said before it ran holds
		if failed {
			c.settings.reset[setLastRelease] = string(answer.ID)
			return nil, refusef(stateData, "what is computed of the released values failed").hinting("the values are charged and kept: they are " +
				"GET /v1/releases/" + string(answer.ID) + " over HTTP, and the answer to the same text unprepared, free of charge")
		}
		if len(p.of.columns) != len(r.columns) {
			return nil, fault.Internal(errors.New("pgwire: an answer has other columns than were described"))
		}
		r.columns = p.of.columns
	}
	for i, row := range released.Rows {
		for _, cell := range cells {
			switch {
			case cell.end < 0:
				r.rows[i] = append(r.rows[i], valueOf(row[cell.of]))
			case released.Intervals[i][cell.of] == nil:
				r.rows[i] = append(r.rows[i], nil)
			default:
				r.rows[i] = append(r.rows[i], valueOf(released.Intervals[i][cell.of][cell.end]))
			}
		}
	}
	if answer.ID != "" {
		c.settings.reset[setLastRelease] = string(answer.ID)
	}
	released.Rows, released.Intervals = nil, nil // the client may take its time
	c.tellPrice(answer, released)
	return r, nil
}

// outerFailed reports whether released values are shown as they are, as the query around them could not be computed.
func outerFailed(released api.Result) bool {
	return slices.ContainsFunc(released.Notes, func(n api.Note) bool { return n.Code == "outer-layer-failed" })
}

// cell is one column of what a client is sent.
type cell struct {
	column
	of  int // the column of the answer
	end int // of its interval: 0 the lower, 1 the upper; -1 for its value
}

// cellsOf are the columns of an answer, with those of intervals where the statement asks for them.
func cellsOf(answer []api.Column, of *prepared) []cell {
	numeric := kindOf("numeric")
	var cells []cell
	ends := of.one.Ends
	asked := func() { // those that stand here
		for ; len(ends) > 0 && ends[0].Place == len(cells); ends = ends[1:] {
			side := 0
			if ends[0].High {
				side = 1
			}
			cells = append(cells, cell{column{ends[0].Name, numeric}, ends[0].Of, side})
		}
	}
	for i, d := range answer {
		asked()
		cells = append(cells, cell{column{d.Name, kindOf(d.Type)}, i, -1})
	}
	asked()
	if !of.intervals {
		return cells
	}
	var all []cell
	for _, c := range cells {
		all = append(all, c)
		if c.end < 0 && hasInterval(answer[c.of]) {
			all = append(all, cell{column{c.name + "_low", numeric}, c.of, 0}, cell{column{c.name + "_high", numeric}, c.of, 1})
		}
	}
	return all
}

func columnsOf(cells []cell) []column {
	list := []column{}
	for _, c := range cells {
		list = append(list, c.column)
	}
	return list
}

// hasInterval reports whether a column is followed by the ends of its interval: every number that noise is in, also where there
// happens to be no interval, so that the columns are known before the answer.
func hasInterval(c api.Column) bool {
	if c.Kind != "aggregate" && c.Kind != "derived" {
		return false
	}
	switch c.Type {
	case "smallint", "integer", "bigint", "numeric", "real", "double precision":
		return true
	default:
		return false
	}
}

// valueOf writes a value as PostgreSQL does.
func valueOf(v api.Value) value {
	if v.IsNull() {
		return nil
	}
	switch text := v.String(); {
	case v.IsBool() && text == "true":
		return value("t")
	case v.IsBool():
		return value("f")
	default:
		return value(text)
	}
}

const defaultConfidence = "95"

// tellPrice is the notice of an answer: error bars, what was spent, what is left; notes as its detail.
func (c *session) tellPrice(answer *gateway.Answer, released api.Result) {
	how := c.settings.get(setNotices)
	if how == "off" || answer.ID == "" && how != "always" { // how old a replay is, and what was spent, is always worth a line
		return
	}
	percent := defaultConfidence
	if text := c.settings.get(setConfidence); text != "" {
		if level, err := strconv.ParseFloat(text, 64); err == nil {
			percent = strconv.FormatFloat(100*level, 'g', 12, 64)
		}
	}
	var words []string
	for _, d := range released.Columns {
		if !d.HalfWidth.IsNull() {
			words = append(words, d.Name+" ± "+d.HalfWidth.String()+" ("+percent+" %)")
		}
	}
	text := ""
	if useful := released.Useful.Text(); useful != "" {
		text = useful + "; "
	}
	if len(words) > 0 {
		text += strings.Join(words, ", ") + "; "
	}
	text += costText(answer) + "; " + amount(answer.Remaining) + " left"
	var notes []string
	for _, n := range released.Notes {
		notes = append(notes, n.Text)
	}
	c.notice("NOTICE", "00000", text, strings.Join(notes, "\n"))
}

// costText says what an answer cost, and what a replay is of: where a prepared copy has a newer version, also what that one costs.
func costText(answer *gateway.Answer) string {
	switch {
	case answer.Replayed:
	case answer.ID != "":
		return "spent " + amount(answer.Spent)
	default:
		return "exact and free"
	}
	text := "a replay of " + answer.At.Format(time.RFC3339)
	if answer.Data != "" {
		text += " (data " + fault.Quote(answer.Data) + ")"
	}
	text += ", spent nothing"
	if n := answer.Newer; n != nil && n.Price != nil {
		text += "; rows of " + n.AsOf.Format(time.RFC3339) + " cost " + amount(*n.Price) + " with SET " + setVersion + " = latest"
		if n.Affordable != nil && !*n.Affordable {
			text += ", which is more than is left"
		}
	} else if n != nil {
		text += "; there are rows of " + n.AsOf.Format(time.RFC3339)
	}
	return text
}

// describeQuestion finds the columns of a question without asking it: parameters are values that any would do for.
func (c *session) describeQuestion(ctx context.Context, s *prepared) ([]column, *refusal) {
	sql := s.one.Text
	if len(s.types) > 0 {
		samples := make([]statement.Argument, len(s.types))
		for i, oid := range s.types {
			samples[i] = sampleOf(c.nameOf(oid))
		}
		var err error
		if sql, err = statement.Bind(sql, samples); err != nil {
			return nil, ofStatement(err)
		}
	}
	empty := c.settings.get(setPreview) == "empty"
	if refused, _ := c.describeText(ctx, s, sql, empty); refused != nil {
		return nil, refused
	}
	return s.columns, nil
}

// describeText asks the service for the columns of a text, which it keeps with the statement.
func (c *session) describeText(ctx context.Context, s *prepared, sql string, preview bool) (*refusal, error) {
	waiting, release := c.watched(ctx)
	columns, err := c.server.config.Questions.Columns(waiting, c.who, api.QueryRequest{Dataset: c.dataset, SQL: sql,
		TimeZone: c.settings.zone()}, preview)
	release()
	if err != nil {
		var at *place
		if len(s.types) == 0 {
			at = &place{text: s.one.Text, offset: s.one.Offset}
		}
		return refusalOf(err, at), err
	}
	s.columns, s.version = columnsOf(cellsOf(columns, s)), c.exposed.version
	return nil, nil
}

// sampleOf is a value of a type.
func sampleOf(name string) statement.Argument {
	text := "x"
	switch name {
	case "bool":
		text = "t"
	case "int2", "int4", "int8", "oid", "float4", "float8", "numeric":
		text = "1"
	case "date":
		text = "2000-01-01"
	case "time":
		text = "00:00:00"
	case "timestamp":
		text = "2000-01-01 00:00:00"
	case "timestamptz":
		text = "2000-01-01 00:00:00+00"
	case "interval":
		text = "1 day"
	case "uuid":
		text = "00000000-0000-0000-0000-000000000000"
	default:
		if element, isArray := strings.CutPrefix(name, "_"); isArray {
			text = "{" + sampleOf(element).Text + "}"
		}
	}
	return statement.Argument{Type: name, Text: text}
}

func explainColumns(asJSON bool) []column {
	if asJSON {
		return []column{{"QUERY PLAN", kindOf("json")}}
	}
	return []column{{"QUERY PLAN", textKind()}}
}

// explain answers EXPLAIN with the estimate, which is free. The first line has the form that tools read costs from: here ε.
func (c *session) explain(ctx context.Context, p *portal, asJSON bool) (*result, *refusal) {
	var e *api.EstimateResponse
	var refused *refusal
	switch p.of.one.Kind {
	case statement.Data:
		e, refused = c.estimate(ctx, p)
	case statement.Catalog:
		e, refused = c.estimateCatalog(ctx, p)
	default:
		refused = unsupported("EXPLAIN of this statement")
	}
	if refused != nil {
		return nil, refused
	}
	r := &result{columns: explainColumns(asJSON), tag: "EXPLAIN"}
	if asJSON {
		text, err := json.MarshalIndent([]any{e}, "", "  ")
		if err != nil {
			return nil, refusalOf(fault.Internal(err), nil)
		}
		r.rows = [][]value{{text}}
		return r, nil
	}
	for _, line := range estimateLines(e) {
		r.rows = append(r.rows, []value{value(line)})
	}
	return r, nil
}

func (c *session) estimate(ctx context.Context, p *portal) (*api.EstimateResponse, *refusal) {
	request, refused := c.settings.request(c.dataset, p.sql)
	if refused != nil {
		return nil, refused
	}
	ctx, release := c.watched(ctx)
	defer release()
	e, err := c.server.config.Questions.Estimate(ctx, c.who, request)
	if err != nil {
		return nil, refusalOf(err, p.place())
	}
	return e, nil
}

// estimateCatalog is the estimate of a query about names and types, which is free. What would be refused is refused here too.
func (c *session) estimateCatalog(ctx context.Context, p *portal) (*api.EstimateResponse, *refusal) {
	if refused := c.columnsOf(ctx, p.of); refused != nil {
		return nil, refused
	}
	answer, err := c.server.config.Service.Budget(ctx, c.who, c.dataset)
	if err != nil {
		return nil, refusalOf(err, nil)
	}
	return &api.EstimateResponse{Dataset: c.dataset, Price: api.Amounts{Epsilon: "0", Rho: "0", Delta: "0"}, Affordable: true,
		Remaining: answer.Budgets[0].Remaining, Outputs: []api.OutputEstimate{}, Notes: []api.Note{},
		Plan: "names and types alone: no data are read"}, nil
}

// estimateLines writes an estimate for people.
func estimateLines(e *api.EstimateResponse) []string {
	cost := string(e.Price.Epsilon)
	if cost == "" {
		cost = "0.00"
	}
	lines := []string{"Release  (cost=0.00.." + cost + " rows=0 width=0)", "  price: " + amount(e.Price),
		"  remaining: " + amount(e.Remaining)}
	if !e.Affordable {
		lines = append(lines, "  not affordable")
	}
	for _, o := range e.Outputs {
		line := "  " + o.Name + ": " + o.Mechanism
		if !o.HalfWidth.IsNull() {
			line += ", ± " + o.HalfWidth.String() + " (" + strconv.FormatFloat(100*e.Confidence, 'g', 12, 64) + " %)"
		}
		lines = append(lines, line)
	}
	if e.Useful != nil {
		lines = append(lines, "  "+e.Useful.Text())
	}
	for line := range strings.SplitSeq(strings.TrimRight(e.Plan, "\n"), "\n") {
		lines = append(lines, "  "+line)
	}
	for _, n := range e.Notes {
		lines = append(lines, "  note: "+n.Text)
	}
	return lines
}
