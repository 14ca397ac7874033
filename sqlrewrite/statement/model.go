package statement

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/parse"
)

// Model is a statement that asks for a model of rows: SELECT linregr(y, ARRAY[1, x]) FROM t WHERE c. Target, Expressions, From and Where
// are as they stand in the text.
type Model struct {
	Function    string // LinearRegression, LogisticRegression or KMeans
	Column      string // the name of its output
	Target      string // of a regression
	Expressions []string
	Centres     int64 // of KMeans
	From        string
	Where       string // "": all rows
}

// The functions of models: names and arguments are MADlib's.
const (
	LinearRegression   = "linregr"
	LogisticRegression = "logregr"
	KMeans             = "kmeans"
)

// modelForm is how a model is asked for; "" where a function is none of a model.
func modelForm(function string) string {
	switch function {
	case LinearRegression, LogisticRegression:
		return "SELECT " + function + "(y, ARRAY[1, x1, x2]) FROM t WHERE c"
	case KMeans:
		return "SELECT kmeans(ARRAY[x1, x2], 4) FROM t WHERE c"
	default:
		return ""
	}
}

// MayAskForModel reports whether a text has the name of a function of models; it is cheap.
func MayAskForModel(text string) bool {
	text = strings.ToLower(text)
	for _, function := range []string{LinearRegression, LogisticRegression, KMeans} {
		if strings.Contains(text, function) {
			return true
		}
	}
	return false
}

// ModelOf reads a statement that asks for a model. It is nil of a text that asks for something else, or that is no statement. A function of
// models that stands beside anything but FROM and WHERE, or whose arguments are others, is plan/fit.
func ModelOf(text string) (*Model, error) {
	if !MayAskForModel(text) {
		return nil, nil
	}
	tree, err := parse.Tree(text, parse.Limits{Bytes: MaxBytes, Tokens: maxTokens})
	if err != nil || len(tree.Stmts) != 1 {
		return nil, nil // whoever reads it as a query says what is wrong
	}
	s := tree.Stmts[0].Stmt.GetSelectStmt()
	for _, output := range s.GetTargetList() {
		call := output.GetResTarget().GetVal().GetFuncCall()
		if len(call.GetFuncname()) != 1 || modelForm(lastName(call.Funcname)) == "" {
			continue
		}
		m := &Model{Function: lastName(call.Funcname), Column: output.GetResTarget().Name}
		if m.Column == "" {
			m.Column = m.Function
		}
		if wrong := m.read(text, s, call); wrong != "" {
			return nil, fault.FitStatement(m.Function, wrong, modelForm(m.Function))
		}
		return m, nil
	}
	return nil, nil
}

// read takes the parts of a statement from its text; wrong is what keeps it from being a model.
func (m *Model) read(text string, s *pg.SelectStmt, call *pg.FuncCall) (wrong string) {
	bare := &pg.SelectStmt{TargetList: s.TargetList, FromClause: s.FromClause, WhereClause: s.WhereClause, LimitOption: s.LimitOption,
		Op: s.Op}
	plain := &pg.FuncCall{Funcname: call.Funcname, Args: call.Args, Location: call.Location, Funcformat: call.Funcformat}
	switch {
	case len(s.TargetList) > 1:
		return "stands beside no other output"
	case len(s.GroupClause) > 0:
		return "has no GROUP BY: ask for each group by WHERE"
	case len(s.FromClause) == 0:
		return "needs FROM"
	case !proto.Equal(bare, s) || !proto.Equal(plain, call):
		return "stands beside nothing but FROM and WHERE"
	case len(call.Args) != 2:
		return "has two arguments"
	}
	w := spoken(text)
	end := closing(w.words, 2)
	if len(w.words) < 3 || w.words[1].Start != call.Location || end == len(w.words) {
		return "is the first word after SELECT, in no brackets"
	}
	arguments := w.listed(3, end)
	from := w.outside(pg.Token_FROM, end, len(w.words))
	last := len(w.words)
	if w.words[last-1].Token == pg.Token_ASCII_59 {
		last--
	}
	if s.WhereClause != nil {
		where := w.outside(pg.Token_WHERE, from, last)
		m.Where, last = w.between(where+1, last), where
	}
	m.From = w.between(from+1, last)
	if m.Function == KMeans {
		return m.readKMeans(w, arguments, call)
	}
	return m.readRegression(w, arguments, call)
}

func (m *Model) readRegression(w spokenText, arguments []part, call *pg.FuncCall) (wrong string) {
	elements := call.Args[1].GetAArrayExpr().GetElements()
	if len(elements) == 0 || elements[0].GetAConst().GetIval().GetIval() != 1 || !w.begins(arguments[1], pg.Token_ARRAY) {
		return "has as its second argument an ARRAY that begins with 1, for the intercept"
	}
	if len(elements) == 1 {
		return "has something beside the 1 in its ARRAY"
	}
	m.Target = w.between(arguments[0].from, arguments[0].to)
	m.Expressions = w.elements(arguments[1])[1:]
	return ""
}

func (m *Model) readKMeans(w spokenText, arguments []part, call *pg.FuncCall) (wrong string) {
	if len(call.Args[0].GetAArrayExpr().GetElements()) == 0 || !w.begins(arguments[0], pg.Token_ARRAY) {
		return "has as its first argument an ARRAY of columns"
	}
	count := call.Args[1].GetAConst().GetIval()
	if count == nil {
		return "has as its second argument how many centres, a whole number"
	}
	m.Expressions, m.Centres = w.elements(arguments[0]), int64(count.Ival)
	return ""
}

type spokenText struct {
	text  string
	words []*pg.ScanToken
}

// spoken reads the words of a text that was parsed before.
func spoken(text string) spokenText {
	r := &reader{message: text}
	return spokenText{text, r.words(0, len(text))}
}

// part are words between two places, the second not included.
type part struct{ from, to int }

// between is the text from one word to another, which is not included.
func (w spokenText) between(from, to int) string {
	if from >= to {
		return ""
	}
	return w.text[w.words[from].Start:w.words[to-1].End]
}

// begins reports whether a part begins with a word of a kind.
func (w spokenText) begins(p part, kind pg.Token) bool { return w.words[p.from].Token == kind }

// depths calls f for each word outside of all brackets between two places, until it says false.
func (w spokenText) depths(from, to int, f func(at int) bool) {
	depth := 0
	for i := from; i < to; i++ {
		switch w.words[i].Token {
		case pg.Token_ASCII_40, pg.Token_ASCII_91:
			depth++
		case pg.Token_ASCII_41, pg.Token_ASCII_93:
			depth--
		default:
			if depth == 0 && !f(i) {
				return
			}
		}
	}
}

// outside is the first word of a kind outside of brackets between two places; the second of these where there is none.
func (w spokenText) outside(kind pg.Token, from, to int) int {
	found := to
	w.depths(from+1, to, func(at int) bool {
		if w.words[at].Token == kind {
			found = at
		}
		return found == to
	})
	return found
}

// listed are the parts between two places that commas separate.
func (w spokenText) listed(from, to int) (parts []part) {
	w.depths(from, to, func(at int) bool {
		if w.words[at].Token == pg.Token_ASCII_44 {
			parts, from = append(parts, part{from, at}), at+1
		}
		return true
	})
	return append(parts, part{from, to})
}

func (w spokenText) elements(array part) (texts []string) {
	for _, e := range w.listed(array.from+2, array.to-1) {
		texts = append(texts, w.between(e.from, e.to))
	}
	return texts
}
