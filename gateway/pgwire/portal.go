package pgwire

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5/pgproto3"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/statement"
)

// prepared is a statement with a name, by Parse or by PREPARE.
type prepared struct {
	name      string
	one       statement.Statement
	types     []uint32 // of its parameters
	intervals bool     // noisegate.intervals as it was at Parse, so that columns and rows agree
	described bool
	columns   []column // once described; nil: no rows
	version   int64    // of the policy by which they were described
}

// portal is a statement with its values and its position in its rows. A cursor of DECLARE is one too, under the same names.
type portal struct {
	name    string
	of      *prepared
	sql     string // what is asked: the statement with its values in their places
	placed  bool   // errors have their place in the client's text: nothing was put into it
	values  []value
	formats []int16
	// Of a statement for the catalog, its values as the client gave them.
	given        [][]byte
	givenFormats []int16
	result       *result // nil until it ran
	next         int     // row
	hold         bool    // outlives its transaction
	fresh        bool    // of a transaction that has not ended
}

// newPortal makes a portal of a statement without parameters.
func newPortal(of *prepared) *portal { return &portal{of: of, sql: textOf(of.one), placed: true} }

// textOf is the query of a statement, or of the command that has one.
func textOf(s statement.Statement) string {
	if body := bodyOf(s); body != nil {
		return body.Text
	}
	return s.Text
}

// bodyOf is the query within a command; nil for none.
func bodyOf(s statement.Statement) *statement.Statement {
	switch command := s.Command.(type) {
	case statement.Declare:
		return &command.Body
	case statement.Copy:
		return &command.Body
	case statement.Explain:
		return &command.Body
	default:
		return nil
	}
}

// place is where the portal's query stands in the client's text; nil when positions would not be those of that text.
func (p *portal) place() *place {
	if !p.placed {
		return nil
	}
	query := &p.of.one
	if body := bodyOf(p.of.one); body != nil {
		query = body
	}
	return &place{text: query.Text, offset: query.Offset}
}

// hasRows reports whether an Execute of the statement gives rows.
func hasRows(s statement.Statement) bool {
	switch s.Kind {
	case statement.Data, statement.Catalog:
		return true
	case statement.Session:
		switch command := s.Command.(type) {
		case statement.Show, statement.Explain, statement.Execute, statement.Cancel, statement.Unlock:
			return true
		case statement.Fetch:
			return !command.Move
		default:
			return false
		}
	default:
		return false
	}
}

// run goes through a portal's rows, at most limit of them; 0: all. The first time it runs the statement.
func (c *session) run(ctx context.Context, p *portal, limit int, describes bool) *refusal {
	one := &p.of.one
	if refused := c.tx.mayRun(one); refused != nil {
		return refused
	}
	if one.Kind == statement.Empty {
		c.send(&pgproto3.EmptyQueryResponse{})
		return nil
	}
	switch {
	case p.result == nil:
		if refused := c.formatsFit(ctx, p); refused != nil {
			return refused
		}
		made, refused := c.perform(ctx, p)
		if refused != nil {
			return refused
		}
		c.keep(p, made)
	case p.result.columns == nil:
		return refusef(stateNotReady, "portal %s cannot be run anymore", fault.Quote(p.name))
	}
	if p.result.columns == nil {
		c.send(&pgproto3.CommandComplete{CommandTag: []byte(p.result.tag)})
		return nil
	}
	return c.sendRows(p, limit, describes)
}

// formatsFit refuses formats that are not those of the portal's columns before the statement costs.
func (c *session) formatsFit(ctx context.Context, p *portal) *refusal {
	if len(p.formats) <= 1 || !hasRows(p.of.one) {
		return checkFormats(p.formats, len(p.formats))
	}
	if refused := c.columnsOf(ctx, p.of); refused != nil {
		return refused
	}
	return checkFormats(p.formats, len(p.of.columns))
}

// perform runs a statement.
func (c *session) perform(ctx context.Context, p *portal) (*result, *refusal) {
	switch one := &p.of.one; one.Kind {
	case statement.Data:
		return c.ask(ctx, p)
	case statement.Catalog:
		return c.askCatalog(ctx, p)
	case statement.Session:
		return c.command(ctx, p)
	case statement.Refused:
		return nil, ofStatement(one.Refusal)
	default:
		return &result{}, nil
	}
}

// keep remembers what a portal gave. It is not refused: memory was asked for before it was computed.
func (c *session) keep(p *portal, r *result) {
	r.size = weight(r.rows)
	c.memory.Resize(int64(c.size() + r.size))
	p.result = r
}

// roomFor refuses what would make statements, values and answers that a session keeps larger than they may be, or than its analyst's share
// of the memory.
func (c *session) roomFor(more int) *refusal {
	const hint = "close cursors and statements; asking again is a free replay"
	more += c.size()
	answers := 0
	for _, p := range c.portals {
		if p.result != nil {
			answers += p.result.size
		}
	}
	switch {
	case more-answers <= maxSmall: // or nobody could close a cursor, whose answer takes the memory
		c.memory.Resize(int64(more))
	case more > maxKept:
		return refusef(stateTooLarge, "what this session keeps has more than %d bytes", maxKept).hinting(hint)
	case !c.memory.Fit(int64(more)):
		return refusef(stateMemory, "there is no memory for what your sessions keep").hinting(hint)
	}
	return nil
}

func (c *session) size() (size int) {
	for _, s := range c.statements {
		size += s.size()
	}
	for _, p := range c.portals {
		size += p.size()
	}
	return size
}

// About how many bytes a value, a row, and a statement or portal take in addition to their texts.
const (
	valueBytes    = 24
	rowBytes      = 24
	preparedBytes = 512
)

// weight is how many bytes rows have.
func weight(rows [][]value) int {
	size := 0
	for _, row := range rows {
		size += rowBytes + valueBytes*len(row)
		for _, v := range row {
			size += len(v)
		}
	}
	return size
}

func (s *prepared) size() int {
	size := preparedBytes + len(s.one.Text) + len(s.name) + 4*len(s.types)
	for _, c := range s.columns {
		size += valueBytes + len(c.name)
	}
	return size
}

func (p *portal) size() int {
	size := preparedBytes + len(p.sql) + len(p.name) + 2*len(p.formats) + 2*len(p.givenFormats) + p.of.size()
	for _, v := range p.values {
		size += valueBytes + len(v)
	}
	for _, v := range p.given {
		size += valueBytes + len(v)
	}
	if p.result != nil {
		size += p.result.size
	}
	return size
}

// sendRows sends the next rows, and what ends an Execute: PortalSuspended when the limit was reached, else CommandComplete. As in
// PostgreSQL, a limit that is just the number of rows suspends.
func (c *session) sendRows(p *portal, limit int, describes bool) *refusal {
	r, formats := p.result, p.formats
	if len(r.formats) > 0 {
		formats = r.formats
	}
	if refused := checkFormats(formats, len(r.columns)); refused != nil {
		return refused
	}
	if describes {
		c.send(describe(r.columns, formats))
	}
	end := len(r.rows)
	suspends := limit > 0 && limit <= end-p.next
	if suspends {
		end = p.next + limit
	}
	sent := end - p.next
	for ; p.next < end; p.next++ {
		row, err := c.encodeRow(r, p.next, formats)
		if err != nil {
			return refusalOf(err, nil)
		}
		c.send(&pgproto3.DataRow{Values: row})
	}
	if suspends {
		c.send(&pgproto3.PortalSuspended{})
		return nil
	}
	c.send(&pgproto3.CommandComplete{CommandTag: []byte(r.tagOf(sent))})
	return nil
}

// tagOf is the tag of so many rows.
func (r *result) tagOf(rows int) string {
	switch r.tag {
	case "SHOW", "EXPLAIN":
		return r.tag
	default:
		return r.tag + " " + strconv.Itoa(rows)
	}
}

func (c *session) encodeRow(r *result, i int, formats []int16) ([][]byte, error) {
	row := make([][]byte, len(r.columns))
	for j, v := range r.rows[i] {
		var err error
		if row[j], err = c.codec.encode(v, r.columns[j].kind, formatOf(r.in, j), formatOf(formats, j)); err != nil {
			return nil, fault.Internal(err)
		}
	}
	return row, nil
}

// addPortal takes a portal under its name. The unnamed one replaces the one before.
func (c *session) addPortal(p *portal) *refusal {
	if p.name == "" {
		c.dropPortal("")
	}
	if c.portals[p.name] != nil {
		return refusef(stateCursorTaken, "cursor %s already exists", fault.Quote(p.name))
	}
	if len(c.portals) >= maxPortals {
		return refusef(stateTooLarge, "a session has at most %d portals and cursors", maxPortals)
	}
	if refused := c.roomFor(p.size()); refused != nil {
		return refused
	}
	p.fresh = true
	c.portals[p.name] = p
	return nil
}

func (c *session) dropPortal(name string) {
	delete(c.portals, name)
}

func (c *session) closePortals(which func(*portal) bool) {
	for _, name := range slices.Sorted(maps.Keys(c.portals)) {
		if which(c.portals[name]) {
			c.dropPortal(name)
		}
	}
}

// addStatement takes a prepared statement under its name. The unnamed one replaces the one before.
func (c *session) addStatement(s *prepared) *refusal {
	if s.name != "" && c.statements[s.name] != nil {
		return refusef(stateStatementTaken, "prepared statement %s already exists", fault.Quote(s.name))
	}
	if len(c.statements) >= maxStatements {
		return refusef(stateTooLarge, "a session has at most %d prepared statements", maxStatements)
	}
	if refused := c.roomFor(s.size()); refused != nil {
		return refused
	}
	c.statements[s.name] = s
	return nil
}

// endCycle closes what lives no longer than a transaction, if none is open.
func (c *session) endCycle() {
	if !c.tx.open {
		c.closePortals(func(p *portal) bool { return !p.hold })
	}
}
