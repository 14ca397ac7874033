package pgwire

import (
	"context"

	"noisegate/sqlrewrite/statement"
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
		if i > 0 {
			if ends := c.stillValid(ctx); ends != nil {
				return ends
			}
		}
		if now := c.settings.get(setSearchPath); now != path { // names are found by the path of their moment
			if again, refused := c.read(list[i].Text); refused == nil && len(again) == 1 {
				again[0].Offset = list[i].Offset
				list[i] = again[0]
			}
		}
		p := newPortal(&prepared{one: list[i], intervals: c.wantsIntervals()})
		refused := c.parameterless(&list[i])
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

// parameterless refuses parameters where there is nothing to give them.
func (c *session) parameterless(s *statement.Statement) *refusal {
	if s.Kind != statement.Refused && s.Parameters > 0 {
		return refusef(stateNoParameter, "there is no parameter $%d", s.Parameters)
	}
	return nil
}
