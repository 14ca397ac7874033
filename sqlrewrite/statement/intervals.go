package statement

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"noisegate.example/sqlrewrite/internal/parse"
)

const stateAmbiguous = "42702"

// End is an output noise_interval_low(x) or noise_interval_high(x) of a query's outermost select list. It is no part of what is asked: the
// interval comes with the answer, so that blanks stand in its place in [Statement.Text].
type End struct {
	Place int    // among all outputs, from 0
	Of    int    // the output whose interval it ends, among those that are asked for, from 0
	High  bool   // the upper end
	Name  string // of the output
}

// intervalEnd is whether a function gives the upper end of an interval. The second pair is for who knows Snowflake's names.
var intervalEnd = map[string]bool{
	"noise_interval_low": false, "noise_interval_high": true,
	"dp_interval_low": false, "dp_interval_high": true,
}

// edit is a part of a message, in bytes, and what takes its place.
type edit struct {
	begin, end int
	text       string
}

// ends takes the ends of intervals out of a query between two bytes of the message.
func (r *reader) ends(to *Statement, n *pg.Node, begin, end int) {
	if !strings.Contains(strings.ToLower(to.Text), "_interval_") {
		return
	}
	asked := proto.Clone(n).(*pg.Node)
	s := asked.GetSelectStmt()
	all := s.TargetList
	s.TargetList = nil
	var calls []*pg.ResTarget
	for i, t := range all {
		call := intervalCall(t.GetResTarget())
		if call == nil {
			s.TargetList = append(s.TargetList, t)
			continue
		}
		name, _ := outputName(t.GetResTarget().Val)
		if t.GetResTarget().Name != "" {
			name = t.GetResTarget().Name
		}
		to.Ends = append(to.Ends, End{Place: i, High: intervalEnd[lastName(call.Funcname)], Name: name})
		calls = append(calls, t.GetResTarget())
	}
	eachInterval(asked.ProtoReflect(), func(call *pg.FuncCall) {
		halt(call.Location, stateUnsupported, "write it as an output of its own, of one output of the same list",
			"%s stands in the outermost select list alone", lastName(call.Funcname))
	})
	if len(calls) == 0 {
		return
	}
	if len(s.DistinctClause) > 0 {
		halt(calls[0].Location, stateUnsupported, "leave out DISTINCT", "ends of intervals beside DISTINCT are not supported")
	}
	for i, c := range calls {
		to.Ends[i].Of = intervalOf(c.Val.GetFuncCall(), s.TargetList)
	}
	edits := slices.Concat(r.removed(all, begin, end), r.renumbered(s, to.Ends, len(all), begin, end))
	to.Text = strings.Trim(edited(r.message, begin, end, edits), white)
	again, err := parse.Tree(to.Text, parse.Limits{Bytes: MaxBytes, Tokens: maxTokens})
	if err != nil || len(again.Stmts) != 1 || !sameTree(asked, again.Stmts[0].Stmt) {
		halt(calls[0].Location, stateUnsupported, "SET noisegate.intervals = columns", "the ends of intervals cannot be told from this text")
	}
}

// intervalCall is the call that an output is, if it is the end of an interval; else nil.
func intervalCall(t *pg.ResTarget) *pg.FuncCall {
	call := t.GetVal().GetFuncCall()
	if !isInterval(call) || call.Location != t.Location { // in brackets of its own
		return nil
	}
	plain := &pg.FuncCall{Funcname: call.Funcname, Args: call.Args, Location: call.Location, Funcformat: call.Funcformat}
	if len(call.Args) != 1 || !proto.Equal(plain, call) {
		halt(call.Location, stateNoFunction, "", "%s takes one output", lastName(call.Funcname))
	}
	return call
}

func isInterval(call *pg.FuncCall) bool {
	if call == nil || len(call.Funcname) != 1 {
		return false
	}
	_, is := intervalEnd[lastName(call.Funcname)]
	return is
}

// eachInterval calls f for each call that gives the end of an interval.
func eachInterval(m protoreflect.Message, f func(*pg.FuncCall)) {
	if call, ok := m.Interface().(*pg.FuncCall); ok && isInterval(call) {
		f(call)
	}
	children(m, func(child protoreflect.Message) { eachInterval(child, f) })
}

// intervalOf is the output that a call names by its name, or by the same expression.
func intervalOf(call *pg.FuncCall, outputs []*pg.Node) int {
	arg, found := call.Args[0], -1
	name := ""
	if column := arg.GetColumnRef(); column != nil && len(column.Fields) == 1 {
		name = lastName(column.Fields)
	}
	for i, o := range outputs {
		t := o.GetResTarget()
		if column := t.Val.GetColumnRef(); column != nil && column.Fields[len(column.Fields)-1].GetAStar() != nil {
			halt(t.Location, stateUnsupported, "write the columns", "* beside ends of intervals is not supported")
		}
		label, _ := outputName(t.Val)
		if t.Name != "" {
			label = t.Name
		}
		switch {
		case name != "" && label == name:
			if found >= 0 {
				halt(call.Location, stateAmbiguous, "give the outputs different names", "several outputs are called %q", name)
			}
			found = i
		case name == "" && found < 0 && sameTree(t.Val, arg):
			found = i
		}
	}
	if found < 0 {
		halt(call.Location, stateUnsupported, "its argument is the name of an output, or the same expression",
			"%s of what is no output of this list", lastName(call.Funcname))
	}
	return found
}

// removed are the edits that take the ends of intervals out of a list of outputs, each with one comma.
func (r *reader) removed(all []*pg.Node, begin, end int) (edits []edit) {
	words := r.words(begin, end)
	blank := func(from, to int) {
		if from >= 0 && to < len(words) {
			edits = append(edits, edit{begin: int(words[from].Start), end: int(words[to].End)})
		}
	}
	kept := 0
	for _, node := range all {
		t := node.GetResTarget()
		if intervalCall(t) == nil {
			kept++
			continue
		}
		first := slices.IndexFunc(words, func(w *pg.ScanToken) bool { return w.Start == t.Location })
		if first < 0 {
			continue // as whoever reads the text again finds out
		}
		last := closing(words, first+1)
		if t.Name != "" {
			if last++; last < len(words) && words[last].Token == pg.Token_AS {
				last++
			}
		}
		blank(first, last)
		if kept == 0 {
			blank(last+1, last+1)
		} else {
			blank(first-1, first-1)
		}
	}
	return edits
}

// renumbered changes the numbers of outputs in ORDER BY and GROUP BY to those among the outputs that stay, in the tree and in the text.
func (r *reader) renumbered(s *pg.SelectStmt, ends []End, all, begin, end int) (edits []edit) {
	words := r.words(begin, end)
	var renumber func(n *pg.Node)
	renumber = func(n *pg.Node) {
		for _, inner := range n.GetGroupingSet().GetContent() {
			renumber(inner)
		}
		constant := n.GetAConst()
		number := constant.GetIval()
		if number == nil || number.Ival < 1 || int(number.Ival) > all {
			return
		}
		before := 0
		for _, e := range ends {
			switch {
			case e.Place+1 == int(number.Ival):
				halt(constant.Location, stateUnsupported, "", "output %d is the end of an interval, by which nothing is grouped or ordered",
					number.Ival)
			case e.Place+1 < int(number.Ival):
				before++
			}
		}
		number.Ival -= int32(before)
		at := slices.IndexFunc(words, func(w *pg.ScanToken) bool { return w.Start == constant.Location })
		if at >= 0 {
			edits = append(edits, edit{int(words[at].Start), int(words[at].End), strconv.Itoa(int(number.Ival))})
		}
	}
	for _, n := range s.GroupClause {
		renumber(n)
	}
	for _, n := range s.SortClause {
		renumber(n.GetSortBy().GetNode())
		column := n.GetSortBy().GetNode().GetColumnRef()
		if column == nil || len(column.Fields) != 1 { // an output's name comes before a column's
			continue
		}
		name := lastName(column.Fields)
		if slices.ContainsFunc(ends, func(e End) bool { return e.Name == name }) {
			halt(column.Location, stateUnsupported, "", "output %s is the end of an interval, by which nothing is ordered", name)
		}
	}
	return edits
}

// edited is a part of the message with edits, each as many characters long as what it replaces, so that places in it stay.
func edited(message string, begin, end int, edits []edit) string {
	slices.SortFunc(edits, func(a, b edit) int { return a.begin - b.begin })
	var b strings.Builder
	for _, e := range edits {
		if e.begin < begin {
			continue // two that overlap: what is made of it does not read as it should
		}
		b.WriteString(message[begin:e.begin])
		b.WriteString(e.text)
		b.WriteString(strings.Repeat(" ", max(utf8.RuneCountInString(message[e.begin:e.end])-len(e.text), 0)))
		begin = e.end
	}
	return b.String() + message[begin:end]
}
