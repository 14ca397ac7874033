package pgwire

import (
	"context"

	"noisegate.example/sqlrewrite/statement"
)

// simple answers a Query: its statements one after the other, up to the first that is refused.
func (c *session) simple(ctx context.Context, text string) *refusal {
	delete(c.statements, "")
	c.dropPortal("")
	list, refused := c.read(text)
	if refused != nil {
		c.fail(refused)
	}
	c.several = len(list) > 1
	path := c.settings.get(setSearchPath)
	for i := range list {
		refused := c.stillValid(ctx)
		if refused == nil && c.settings.get(setSearchPath) != path { // names are found by the path of their moment
			refused = c.reread(&list[i])
		}
		p := newPortal(&prepared{one: list[i], intervals: c.wantsIntervals()})
		if refused == nil {
			refused = c.parameterless(&list[i])
		}
		if refused == nil {
			refused = c.run(ctx, p, 0, true)
		}
		if refused != nil {
			if refused.ends {
				return refused
			}
			c.fail(refused)
			break
		}
	}
	c.endCycle()
	c.ready()
	return nil
}

// reread reads a statement of a message again, by the settings as they are now.
func (c *session) reread(s *statement.Statement) *refusal {
	again, refused := c.read(s.Text)
	switch {
	case refused != nil:
		return refused
	case len(again) != 1:
		return refusef(stateSyntax, "this is not one statement")
	case len(s.Ends) > 0 && again[0].Kind != statement.Data: // and the text has blanks in their place
		return unsupported("the end of an interval in a query about catalogs")
	}
	again[0].Offset, again[0].Ends = s.Offset, s.Ends
	*s = again[0]
	return nil
}

// parameterless refuses parameters where there is nothing to give them.
func (c *session) parameterless(s *statement.Statement) *refusal {
	if s.Kind != statement.Refused && s.Parameters > 0 {
		return refusef(stateNoParameter, "there is no parameter $%d", s.Parameters)
	}
	return nil
}
