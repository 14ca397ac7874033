package parse

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/syntax"
)

// The bits of pg.WindowDef.FrameOptions, from PostgreSQL's parsenodes.h, which is where the library has its numbers from.
const (
	frameWritten          = 0x00001
	frameRange            = 0x00002
	frameRows             = 0x00004
	frameGroups           = 0x00008
	frameBetween          = 0x00010
	frameStartUnbounded   = 0x00020 // UNBOUNDED PRECEDING
	frameEndUnbounded     = 0x00100 // UNBOUNDED FOLLOWING
	frameStartCurrent     = 0x00200
	frameEndCurrent       = 0x00400
	frameStartPreceding   = 0x00800
	frameEndPreceding     = 0x01000
	frameStartFollowing   = 0x02000
	frameEndFollowing     = 0x04000
	frameExcluding        = 0x08000 | 0x10000 | 0x20000
	frameStarts, frameEnd = frameStartUnbounded | frameStartCurrent | frameStartPreceding | frameStartFollowing,
		frameEndUnbounded | frameEndCurrent | frameEndPreceding | frameEndFollowing
)

func (c *converter) namedWindows(nodes []*pg.Node) []syntax.NamedWindow {
	var windows []syntax.NamedWindow
	for _, node := range nodes {
		definition, ok := node.Node.(*pg.Node_WindowDef)
		if !ok {
			c.unknown(node)
			return nil
		}
		name := take(&definition.WindowDef.Name)
		windows = append(windows, syntax.NamedWindow{Name: name, Window: c.window(definition.WindowDef)})
	}
	return windows
}

// window converts OVER (...), OVER name and the body of an item of WINDOW. OVER name is a window as it is, while (name ...) adds to one;
// to us both are the name and what is added.
func (c *converter) window(n *pg.WindowDef) *syntax.Window {
	w := &syntax.Window{Pos: syntax.Pos(take(&n.Location))}
	if w.Name = take(&n.Name); w.Name == "" {
		w.Name = take(&n.Refname)
	}
	w.PartitionBy = c.exprs(take(&n.PartitionClause))
	w.OrderBy = c.orderBy(take(&n.OrderClause))
	if options := int(take(&n.FrameOptions)); options&frameWritten != 0 {
		w.Frame = c.frame(n, options, w.Pos)
	}
	c.spent(n, w.Pos)
	return w
}

func (c *converter) frame(n *pg.WindowDef, options int, at syntax.Pos) *syntax.Frame {
	if options&frameExcluding != 0 {
		c.refuse(at, "EXCLUDE in a window frame", "leave it out")
		return nil
	}
	f := &syntax.Frame{}
	switch options & (frameRange | frameRows | frameGroups) {
	case frameRows:
		f.Mode = syntax.Rows
	case frameRange:
		f.Mode = syntax.Range
	case frameGroups:
		f.Mode = syntax.Groups
	default:
		c.refuse(at, "this window frame", "write ROWS, RANGE or GROUPS")
	}
	bounds := map[int]syntax.FrameBoundKind{
		frameStartUnbounded: syntax.UnboundedPreceding, frameStartCurrent: syntax.CurrentRow,
		frameStartPreceding: syntax.Preceding, frameStartFollowing: syntax.Following,
		frameEndUnbounded: syntax.UnboundedFollowing, frameEndCurrent: syntax.CurrentRow,
		frameEndPreceding: syntax.Preceding, frameEndFollowing: syntax.Following,
	}
	f.Start.Kind, f.End.Kind = bounds[options&frameStarts], bounds[options&frameEnd]
	if f.Start.Kind.HasOffset() {
		f.Start.Offset = c.expr(take(&n.StartOffset))
	}
	if f.End.Kind.HasOffset() {
		f.End.Offset = c.expr(take(&n.EndOffset))
	}
	known := frameWritten | frameBetween | frameRange | frameRows | frameGroups | frameStarts | frameEnd
	if f.Start.Kind == "" || f.End.Kind == "" || options&^known != 0 {
		c.refuse(at, "this window frame", "")
	}
	return f
}
