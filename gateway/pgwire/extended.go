package pgwire

import (
	"bytes"
	"context"
	"slices"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/statement"
)

// A statement runs at its first Execute, never at Parse, Bind or Describe: these cost nothing.

// sync ends a cycle of the extended protocol.
func (c *session) sync() {
	c.skipping = false
	c.endCycle()
	c.ready()
}

// extended answers a message of the extended protocol. After an error everything is skipped up to Sync.
func (c *session) extended(ctx context.Context, message pgproto3.FrontendMessage) *refusal {
	c.several = false
	refused := c.stillValid(ctx)
	if refused == nil {
		refused = c.extendedOne(ctx, message)
	}
	if refused == nil || refused.ends {
		return refused
	}
	c.fail(refused)
	c.skipping = true
	c.flush() // now: a Flush that follows is skipped, and asyncpg sends its Sync when it has read the error
	return nil
}

// extendedOne answers one message of the extended protocol.
func (c *session) extendedOne(ctx context.Context, message pgproto3.FrontendMessage) *refusal {
	switch m := message.(type) {
	case *pgproto3.Parse:
		return c.parse(m)
	case *pgproto3.Bind:
		return c.bind(m)
	case *pgproto3.Describe:
		return c.describeOne(ctx, m)
	case *pgproto3.Execute:
		return c.execute(ctx, m)
	case *pgproto3.Close:
		if m.ObjectType == 'S' {
			delete(c.statements, m.Name)
		} else {
			c.dropPortal(m.Name)
		}
		c.send(&pgproto3.CloseComplete{})
		return nil
	default:
		return violation("this message is not expected here")
	}
}

// parse prepares a statement.
func (c *session) parse(m *pgproto3.Parse) *refusal {
	list, refused := c.read(m.Query)
	switch {
	case refused != nil:
		return refused
	case len(list) > 1:
		return refusef(stateSyntax, "cannot insert multiple commands into a prepared statement")
	}
	s := &prepared{name: m.Name, one: list[0], intervals: c.wantsIntervals()}
	if refused := c.tx.mayRun(&s.one); refused != nil {
		return refused
	}
	if s.one.Kind == statement.Refused {
		return ofStatement(s.one.Refusal)
	}
	if s.types, refused = c.parameterTypes(s.one, m.ParameterOIDs); refused != nil {
		return refused
	}
	if refused := c.addStatement(s); refused != nil {
		return refused
	}
	c.send(&pgproto3.ParseComplete{})
	return nil
}

// parameterTypes are those that the client gave, or else what the parameters are compared with, or else text.
func (c *session) parameterTypes(s statement.Statement, given []uint32) ([]uint32, *refusal) {
	types := make([]uint32, s.Parameters)
	if c.passesOn(s) {
		copy(types, given) // the catalog says which it takes, and infers the others
		return types, nil
	}
	var inferred []string
	for i := range types {
		if i < len(given) && given[i] != 0 && given[i] != pgtype.UnknownOID {
			if types[i] = given[i]; !c.codec.takes(given[i]) {
				return nil, refusef(stateUnsupported, "parameter $%d has a type that is not supported", i+1)
			}
			continue
		}
		if inferred == nil {
			var err error
			if inferred, err = statement.ParameterTypes(textOf(s), c.exposed.columns); err != nil {
				return nil, ofStatement(err)
			}
		}
		types[i] = pgtype.TextOID
		if i < len(inferred) {
			types[i] = c.oidOf(inferred[i])
		}
	}
	return types, nil
}

// oidOf is the number of a type by PostgreSQL's internal name; text for what is none that parameters may have.
func (c *session) oidOf(name string) uint32 {
	if t, ok := c.codec.types.TypeForName(name); ok && c.codec.takes(t.OID) {
		return t.OID
	}
	return pgtype.TextOID
}

// passesOn reports whether a statement's parameters go to the catalog as they are.
func (c *session) passesOn(s statement.Statement) bool {
	if body := bodyOf(s); body != nil {
		s = *body
	}
	return s.Kind == statement.Catalog && c.server.config.Catalog != nil
}

// nameOf is PostgreSQL's internal name of a type.
func (c *session) nameOf(oid uint32) string {
	if t, ok := c.codec.types.TypeForOID(oid); ok {
		return t.Name
	}
	return "text"
}

// bind makes a portal of a prepared statement and values.
func (c *session) bind(m *pgproto3.Bind) *refusal {
	s := c.statements[m.PreparedStatement]
	if s == nil {
		return noStatement(m.PreparedStatement)
	}
	if refused := c.tx.mayRun(&s.one); refused != nil {
		return refused
	}
	if len(m.Parameters) != len(s.types) {
		return refusef(stateProtocol, "bind message supplies %d parameters, but prepared statement %s requires %d", len(m.Parameters),
			fault.Quote(m.PreparedStatement), len(s.types))
	}
	if refused := checkFormats(m.ParameterFormatCodes, len(s.types)); refused != nil {
		return refused
	}
	values := make([]value, len(s.types))
	for i, v := range m.Parameters {
		if c.passesOn(s.one) {
			break
		}
		var refused *refusal
		if values[i], refused = c.codec.argument(v, s.types[i], formatOf(m.ParameterFormatCodes, i), i+1); refused != nil {
			return refused
		}
	}
	p, refused := c.bound(s, values)
	if refused != nil {
		return refused
	}
	if c.passesOn(s.one) {
		p.given, p.givenFormats = make([][]byte, len(m.Parameters)), slices.Clone(m.ParameterFormatCodes)
		for i, v := range m.Parameters {
			p.given[i] = bytes.Clone(v)
		}
	}
	p.name, p.formats = m.DestinationPortal, slices.Clone(m.ResultFormatCodes)
	if refused := c.addPortal(p); refused != nil {
		return refused
	}
	c.send(&pgproto3.BindComplete{})
	return nil
}

// bound is a portal of a statement with its values in their places.
func (c *session) bound(s *prepared, values []value) (*portal, *refusal) {
	p := newPortal(s)
	if len(values) == 0 {
		return p, nil
	}
	p.values, p.placed = values, false
	if c.passesOn(s.one) {
		for _, v := range values {
			p.given = append(p.given, v)
		}
		return p, nil
	}
	if _, cancels := s.one.Command.(statement.Cancel); cancels {
		return p, nil
	}
	arguments := make([]statement.Argument, len(values))
	for i, v := range values {
		arguments[i] = statement.Argument{Type: c.nameOf(s.types[i]), Null: v == nil, Text: string(v)}
	}
	var err error
	if p.sql, err = statement.Bind(textOf(s.one), arguments); err != nil {
		return nil, ofStatement(err)
	}
	return p, nil
}

// describeOne sends the parameters of a statement and the columns of a statement or portal.
func (c *session) describeOne(ctx context.Context, m *pgproto3.Describe) *refusal {
	if m.ObjectType == 'S' {
		s := c.statements[m.Name]
		if s == nil {
			return noStatement(m.Name)
		}
		return c.tell(ctx, s, nil, &pgproto3.ParameterDescription{})
	}
	p := c.portals[m.Name]
	if p == nil {
		return noPortal(m.Name)
	}
	return c.tell(ctx, p.of, p.formats, nil)
}

// tell sends what is known of a statement before it runs.
func (c *session) tell(ctx context.Context, s *prepared, formats []int16, parameters *pgproto3.ParameterDescription) *refusal {
	if hasRows(s.one) {
		if refused := c.tx.mayRun(&s.one); refused != nil {
			return refused
		}
		if refused := c.columnsOf(ctx, s); refused != nil {
			return refused
		}
		if refused := checkFormats(formats, len(s.columns)); refused != nil {
			return refused
		}
	}
	if parameters != nil {
		parameters.ParameterOIDs = s.types
		c.send(parameters)
	}
	if s.columns == nil {
		c.send(&pgproto3.NoData{})
	} else {
		c.send(describe(s.columns, formats))
	}
	return nil
}

// columnsOf finds the columns of a statement that has rows, without running it.
func (c *session) columnsOf(ctx context.Context, s *prepared) (refused *refusal) {
	if s.described {
		return nil
	}
	switch s.one.Kind {
	case statement.Data:
		s.columns, refused = c.describeQuestion(ctx, s)
	case statement.Catalog:
		refused = c.describeCatalog(ctx, s)
	default:
		s.columns, refused = c.columnsOfCommand(ctx, s)
	}
	s.described = refused == nil
	return refused
}

// execute runs a portal, or goes on with it.
func (c *session) execute(ctx context.Context, m *pgproto3.Execute) *refusal {
	p := c.portals[m.Portal]
	if p == nil {
		return noPortal(m.Portal)
	}
	limit := int(min(m.MaxRows, maxKept))
	if int32(m.MaxRows) < 0 {
		limit = 0 // as PostgreSQL reads it: all
	}
	return c.run(ctx, p, limit, false)
}
