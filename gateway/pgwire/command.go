package pgwire

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"noisegate.example/api"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/statement"
)

// done is a result without rows.
func done(tag string, refused *refusal) (*result, *refusal) { return &result{tag: tag}, refused }

// command executes a statement that is for the session itself.
func (c *session) command(ctx context.Context, p *portal) (*result, *refusal) {
	switch command := p.of.one.Command.(type) {
	case statement.Transaction:
		return done(c.transact(command))
	case statement.Set:
		if command.Local && !c.tx.open {
			c.warn(stateNoTransaction, "SET LOCAL can only be used in transaction blocks")
			return done("SET", nil)
		}
		return done("SET", c.settings.set(command))
	case statement.Reset:
		if command.Name == "" {
			c.settings.resetAll()
			return done("RESET", nil)
		}
		return done("RESET", c.settings.restore(command.Name, false))
	case statement.Show:
		return c.show(ctx, command)
	case statement.Discard:
		return done("DISCARD "+command.Target, c.discard(command))
	case statement.Prepare:
		return done("PREPARE", c.prepare(command))
	case statement.Execute:
		inner, refused := c.executed(command)
		if refused != nil {
			return nil, refused
		}
		return c.perform(ctx, inner)
	case statement.Deallocate:
		return c.deallocate(command)
	case statement.Declare:
		return done("DECLARE CURSOR", c.declare(p, command))
	case statement.Fetch:
		return c.fetch(ctx, command)
	case statement.Close:
		return c.closeCursor(command)
	case statement.Copy:
		inner := p.within(&command.Body)
		if command.Format == statement.CopyBinary {
			inner.formats = []int16{binaryFormat}
		}
		return c.copyOut(ctx, inner, command)
	case statement.Explain:
		return c.explain(ctx, p.within(&command.Body), command.JSON)
	case statement.Unlisten:
		return done("UNLISTEN", nil)
	case statement.Unlock:
		return &result{columns: unlockColumns(command), rows: [][]value{{value{}}}, tag: "SELECT"}, nil
	case statement.Cancel:
		return c.cancelOther(ctx, p, command)
	default:
		return nil, refusef(stateUnsupported, "this command is not supported")
	}
}

// within is a portal of the query within a portal's command.
func (p *portal) within(body *statement.Statement) *portal {
	return &portal{name: p.name, of: &prepared{one: *body, types: p.of.types, intervals: p.of.intervals}, sql: p.sql,
		placed: p.placed, values: p.values, given: p.given, givenFormats: p.givenFormats}
}

// columnsOfCommand are the columns of a command that has rows.
func (c *session) columnsOfCommand(ctx context.Context, s *prepared) ([]column, *refusal) {
	switch command := s.one.Command.(type) {
	case statement.Show:
		return c.showColumns(command)
	case statement.Explain:
		return explainColumns(command.JSON), nil
	case statement.Fetch:
		cursor, refused := c.cursor(command.Name)
		if refused != nil {
			return nil, refused
		}
		refused = c.columnsOf(ctx, cursor.of)
		return cursor.of.columns, refused
	case statement.Execute:
		inner, refused := c.executable(command.Name)
		if refused != nil {
			return nil, refused
		}
		refused = c.columnsOf(ctx, inner)
		return inner.columns, refused
	case statement.Unlock:
		return unlockColumns(command), nil
	case statement.Cancel:
		return []column{{command.Column, kindOf("boolean")}}, nil
	default:
		return nil, nil
	}
}

// unlockColumns are those of a function that gives nothing.
func unlockColumns(command statement.Unlock) []column {
	return []column{{command.Column, kindOf("void")}}
}

func (c *session) showColumns(command statement.Show) ([]column, *refusal) {
	if command.Name == "" {
		return []column{{"name", textKind()}, {"setting", textKind()}, {"description", textKind()}}, nil
	}
	d, ok := c.settings.known[command.Name]
	if !ok {
		return nil, c.settings.unknown(command.Name)
	}
	return []column{{d.name, textKind()}}, nil
}

func (c *session) show(ctx context.Context, command statement.Show) (*result, *refusal) {
	columns, refused := c.showColumns(command)
	if refused != nil {
		return nil, refused
	}
	r := &result{columns: columns, tag: "SHOW"}
	if command.Name != "" {
		text, refused := c.shown(ctx, command.Name)
		r.rows = [][]value{{value(text)}}
		return r, refused
	}
	for _, d := range definitions() {
		text, refused := c.shown(ctx, strings.ToLower(d.name))
		if refused != nil {
			return nil, refused
		}
		r.rows = append(r.rows, []value{value(d.name), value(text), value("")})
	}
	return r, nil
}

// shown is a setting's value; the budget is asked for.
func (c *session) shown(ctx context.Context, name string) (string, *refusal) {
	if name != setBudget {
		return c.settings.get(name), nil
	}
	answer, err := c.server.config.Service.Budget(ctx, c.who, c.dataset)
	if err != nil {
		return "", refusalOf(err, nil)
	}
	text := amount(answer.Budgets[0].Remaining) + " left"
	if advice := answer.Budgets[0].Advice; advice != "" {
		text += ": " + advice
	}
	return text, nil
}

// amount writes a loss for people, in the currency in which it is finite.
func amount(a api.Amounts) string {
	switch {
	case a.Epsilon != "":
		return "ε " + string(a.Epsilon)
	case a.Rho != "":
		return "ρ " + string(a.Rho)
	default:
		return "no limit"
	}
}

func (c *session) discard(command statement.Discard) *refusal {
	if command.Target != "ALL" {
		return nil // plans, sequences and temporary tables: there are none
	}
	if c.tx.open || c.several {
		return refusef(stateActiveTransaction, "DISCARD ALL cannot run inside a transaction block")
	}
	c.closePortals(func(p *portal) bool { return p.name != "" })
	clear(c.statements)
	c.settings.resetAll()
	return nil
}

func (c *session) prepare(command statement.Prepare) *refusal {
	s := &prepared{name: command.Name, one: command.Body, intervals: c.wantsIntervals()}
	given := make([]uint32, len(command.Types))
	for i, name := range command.Types {
		if name == "unknown" {
			continue
		}
		t, ok := c.codec.types.TypeForName(name)
		if !ok || !c.codec.takes(t.OID) {
			return refusef(stateUnsupported, "parameter $%d has a type that is not supported", i+1)
		}
		given[i] = t.OID
	}
	s.one.Parameters = max(s.one.Parameters, len(given))
	var refused *refusal
	if s.types, refused = c.parameterTypes(s.one, given); refused != nil {
		return refused
	}
	return c.addStatement(s)
}

// executable is the statement of an EXECUTE. It is a query: one that executes or fetches itself would never end.
func (c *session) executable(name string) (*prepared, *refusal) {
	s := c.statements[name]
	switch {
	case s == nil:
		return nil, noStatement(name)
	case !isQuery(s.one):
		return nil, unsupported("EXECUTE of a statement that is no query")
	}
	return s, nil
}

// cursor is the portal of a FETCH, which is one of a query for the same reason.
func (c *session) cursor(name string) (*portal, *refusal) {
	p := c.portals[name]
	switch {
	case p == nil:
		return nil, noCursor(name)
	case !isQuery(p.of.one):
		return nil, refusef(stateNoCursor, "cursor %s is of no query", fault.Quote(name))
	}
	return p, nil
}

func isQuery(s statement.Statement) bool {
	return s.Kind == statement.Data || s.Kind == statement.Catalog
}

func (c *session) executed(command statement.Execute) (*portal, *refusal) {
	s, refused := c.executable(command.Name)
	switch {
	case refused != nil:
		return nil, refused
	case len(command.Arguments) != len(s.types):
		return nil, refusef(stateSyntax, "wrong number of parameters for prepared statement %s", fault.Quote(command.Name)).hinting(
			"it has " + strconv.Itoa(len(s.types)))
	}
	values := make([]value, len(command.Arguments))
	for i, a := range command.Arguments {
		if !a.Null {
			values[i] = value(a.Text)
		}
	}
	p, refused := c.bound(s, values)
	if refused == nil {
		p.placed = false // the text is that of PREPARE
	}
	return p, refused
}

func (c *session) deallocate(command statement.Deallocate) (*result, *refusal) {
	if command.Name == "" {
		clear(c.statements)
		return done("DEALLOCATE ALL", nil)
	}
	if c.statements[command.Name] == nil {
		return nil, noStatement(command.Name)
	}
	delete(c.statements, command.Name)
	return done("DEALLOCATE", nil)
}

// declare makes a cursor, which runs at its first FETCH.
func (c *session) declare(p *portal, command statement.Declare) *refusal {
	if !c.tx.open && !command.Hold && !c.several {
		return refusef(stateNoTransaction, "DECLARE CURSOR can only be used in transaction blocks")
	}
	cursor := p.within(&command.Body)
	if cursor.name, cursor.hold = command.Name, command.Hold; command.Binary {
		cursor.formats = []int16{binaryFormat}
	}
	return c.addPortal(cursor)
}

// fetch takes rows of a cursor.
func (c *session) fetch(ctx context.Context, command statement.Fetch) (*result, *refusal) {
	p, refused := c.cursor(command.Name)
	if refused != nil {
		return nil, refused
	}
	if p.result == nil {
		made, refused := c.perform(ctx, p)
		if refused != nil {
			return nil, refused
		}
		c.keep(p, made)
	}
	end := len(p.result.rows)
	if !command.All && command.Count < int64(end-p.next) {
		end = p.next + int(command.Count)
	}
	rows := p.result.rows[p.next:end]
	p.next = end
	if command.Move {
		return done("MOVE "+strconv.Itoa(len(rows)), nil)
	}
	return &result{columns: p.result.columns, rows: rows, tag: "FETCH", formats: p.formats, in: p.result.in}, nil
}

func (c *session) closeCursor(command statement.Close) (*result, *refusal) {
	if command.Name == "" {
		for _, name := range slices.Sorted(maps.Keys(c.portals)) {
			if name != "" {
				c.dropPortal(name)
			}
		}
		return done("CLOSE CURSOR ALL", nil)
	}
	if c.portals[command.Name] == nil {
		return nil, noCursor(command.Name)
	}
	c.dropPortal(command.Name)
	return done("CLOSE CURSOR", nil)
}

// cancelOther stops what another session of the analyst's does, or that session. Those of others do not exist.
func (c *session) cancelOther(ctx context.Context, p *portal, command statement.Cancel) (*result, *refusal) {
	pid := command.PID
	if command.Parameter > 0 {
		if command.Parameter > len(p.values) {
			return nil, refusef(stateNoParameter, "there is no parameter $%d", command.Parameter)
		}
		n, err := strconv.ParseInt(string(p.values[command.Parameter-1]), 10, 32)
		if err != nil {
			return nil, refusef(stateBadText, "the number of a session is an integer")
		}
		pid = int32(n)
	}
	found := c.server.own(c.who.Subject, pid)
	r := &result{columns: []column{{command.Column, kindOf("boolean")}}, tag: "SELECT"}
	if found == nil {
		if !command.Listed {
			c.warn(stateWarning, "PID "+strconv.Itoa(int(pid))+" is not a PostgreSQL server process")
			r.rows = [][]value{{value("f")}}
		}
		return r, nil
	}
	if found.cancel(ctx); command.Terminate {
		found.wake()
	}
	r.rows = [][]value{{value("t")}}
	return r, nil
}

// own is a session of an analyst's; nil: there is none of that number.
func (s *Server) own(subject string, pid int32) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.sessions[uint32(pid)]; c != nil && c.who.Subject == subject {
		return c
	}
	return nil
}
