package statement

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// command reads a statement that is no query; it refuses what no session does.
func (r *reader) command(n *pg.Node, begin, end int) Command {
	switch n := n.Node.(type) {
	case *pg.Node_TransactionStmt:
		return r.transaction(n.TransactionStmt, begin)
	case *pg.Node_VariableSetStmt:
		return r.set(n.VariableSetStmt, begin)
	case *pg.Node_VariableShowStmt:
		if strings.EqualFold(n.VariableShowStmt.Name, "all") {
			return Show{}
		}
		return Show{Name: strings.ToLower(n.VariableShowStmt.Name)}
	case *pg.Node_DiscardStmt:
		return Discard{Target: strings.TrimPrefix(n.DiscardStmt.Target.String(), "DISCARD_")}
	case *pg.Node_PrepareStmt:
		return r.prepare(n.PrepareStmt, begin, end)
	case *pg.Node_ExecuteStmt:
		e := Execute{Name: n.ExecuteStmt.Name}
		for _, p := range n.ExecuteStmt.Params {
			e.Arguments = append(e.Arguments, constant(p, int32(begin)))
		}
		return e
	case *pg.Node_DeallocateStmt:
		return Deallocate{Name: n.DeallocateStmt.Name}
	case *pg.Node_DeclareCursorStmt:
		return r.declare(n.DeclareCursorStmt, begin, end)
	case *pg.Node_FetchStmt:
		return fetch(n.FetchStmt, begin)
	case *pg.Node_ClosePortalStmt:
		return Close{Name: n.ClosePortalStmt.Portalname}
	case *pg.Node_CopyStmt:
		return r.copy(n.CopyStmt, begin, end)
	case *pg.Node_ExplainStmt:
		return r.explain(n.ExplainStmt, begin, end)
	case *pg.Node_UnlistenStmt:
		return Unlisten{}
	}
	r.refuse(n, begin, end)
	return nil
}

// refuse names a statement that never runs as PostgreSQL does.
func (r *reader) refuse(n *pg.Node, begin, end int) {
	at := int32(begin)
	switch n.GetNode().(type) {
	case *pg.Node_ListenStmt, *pg.Node_NotifyStmt:
		halt(at, stateUnsupported, "ask again to see what changed", "LISTEN and NOTIFY are not supported")
	case *pg.Node_ExecuteStmt:
		halt(at, stateUnsupported, "write the query itself", "a prepared statement cannot stand here")
	}
	halt(at, stateReadOnly, "", "cannot execute %s in a read-only transaction", r.tag(n, begin, end))
}

// tag is the name of a statement: its first word, with what CREATE, ALTER and DROP are about.
func (r *reader) tag(n *pg.Node, begin, end int) string {
	switch n.GetNode().(type) { // may begin with WITH
	case *pg.Node_InsertStmt:
		return "INSERT"
	case *pg.Node_UpdateStmt:
		return "UPDATE"
	case *pg.Node_DeleteStmt:
		return "DELETE"
	case *pg.Node_MergeStmt:
		return "MERGE"
	}
	tag := ""
	for _, t := range r.words(begin, end) {
		switch w := r.word(t); {
		case tag == "" && slices.Contains([]string{"CREATE", "ALTER", "DROP"}, w):
			tag = w
		case tag == "":
			return w
		case !slices.Contains([]string{"OR", "REPLACE", "TEMP", "TEMPORARY", "UNLOGGED", "UNIQUE", "GLOBAL", "LOCAL"}, w):
			return tag + " " + w
		}
	}
	return tag
}

func (r *reader) transaction(n *pg.TransactionStmt, begin int) Command {
	t := Transaction{Name: n.SavepointName, Chain: n.Chain}
	switch n.Kind {
	case pg.TransactionStmtKind_TRANS_STMT_BEGIN:
		t.Verb = Begin
	case pg.TransactionStmtKind_TRANS_STMT_START:
		t.Verb, t.Start = Begin, true
	case pg.TransactionStmtKind_TRANS_STMT_COMMIT:
		t.Verb = Commit
	case pg.TransactionStmtKind_TRANS_STMT_ROLLBACK:
		t.Verb = Rollback
	case pg.TransactionStmtKind_TRANS_STMT_SAVEPOINT:
		t.Verb = Savepoint
	case pg.TransactionStmtKind_TRANS_STMT_RELEASE:
		t.Verb = ReleaseSavepoint
	case pg.TransactionStmtKind_TRANS_STMT_ROLLBACK_TO:
		t.Verb = RollbackTo
	default:
		halt(int32(begin), stateUnsupported, "", "two-phase commit is not supported")
	}
	t.Modes = modes(n.Options, int32(begin))
	return t
}

// modes are those of a transaction.
func modes(options []*pg.Node, at int32) (all []Setting) {
	for _, o := range options {
		mode := o.GetDefElem()
		value := constant(mode.GetArg(), at).Text
		if mode.Defname != "transaction_isolation" { // 1 or 0
			value = map[string]string{"1": "on", "0": "off"}[value]
		}
		all = append(all, Setting{Name: mode.Defname, Values: []string{value}})
	}
	return all
}

func (r *reader) set(n *pg.VariableSetStmt, begin int) Command {
	name, at := strings.ToLower(n.Name), int32(begin)
	switch n.Kind {
	case pg.VariableSetKind_VAR_RESET:
		return Reset{Name: name}
	case pg.VariableSetKind_VAR_RESET_ALL:
		return Reset{}
	case pg.VariableSetKind_VAR_SET_DEFAULT:
		return Set{Settings: []Setting{{Name: name, Default: true}}, Local: n.IsLocal}
	case pg.VariableSetKind_VAR_SET_VALUE:
		return Set{Settings: []Setting{{Name: name, Values: values(n, at)}}, Local: n.IsLocal}
	case pg.VariableSetKind_VAR_SET_MULTI:
		switch name {
		case "transaction":
			return Set{Settings: modes(n.Args, at), Local: true}
		case "session characteristics":
			all := modes(n.Args, at)
			for i := range all {
				all[i].Name = "default_" + all[i].Name
			}
			return Set{Settings: all}
		}
	case pg.VariableSetKind_VARIABLE_SET_KIND_UNDEFINED, pg.VariableSetKind_VAR_SET_CURRENT:
	}
	halt(at, stateUnsupported, "", "SET %s is not supported", strings.ToUpper(name))
	return nil
}

// values are what a setting is set to. Only the two that are lists take several.
func values(n *pg.VariableSetStmt, at int32) (all []string) {
	for _, arg := range n.Args {
		value := constant(arg, at)
		if value.Null {
			halt(at, stateSyntax, "", "NULL is no value of a parameter")
		}
		all = append(all, value.Text)
	}
	if name := strings.ToLower(n.Name); len(all) > 1 && name != "search_path" && name != "datestyle" {
		halt(at, stateInvalid, "", "SET %s takes only one argument", name)
	}
	return all
}

// constant reads a value that needs no computing: a literal, or the cast of one.
func constant(n *pg.Node, at int32) Constant {
	if cast := n.GetTypeCast(); cast != nil && len(cast.TypeName.GetTypmods()) == 0 {
		n = cast.Arg
	}
	c := n.GetAConst()
	if c == nil {
		halt(at, stateUnsupported, "write constants", "only constants can stand here")
	}
	if c.Isnull {
		return Constant{Null: true}
	}
	switch v := c.Val.(type) {
	case *pg.A_Const_Ival:
		return Constant{Text: strconv.Itoa(int(v.Ival.GetIval()))}
	case *pg.A_Const_Fval:
		return Constant{Text: v.Fval.GetFval()}
	case *pg.A_Const_Boolval:
		return Constant{Text: strconv.FormatBool(v.Boolval.GetBoolval())}
	case *pg.A_Const_Sval:
		return Constant{Text: v.Sval.GetSval()}
	}
	halt(at, stateUnsupported, "write a number or a text", "bit strings cannot stand here")
	return Constant{}
}

func (r *reader) prepare(n *pg.PrepareStmt, begin, end int) Command {
	p := Prepare{Name: n.Name}
	for _, t := range n.Argtypes {
		p.Types = append(p.Types, typeOf(t.GetTypeName(), int32(begin)))
	}
	words := r.words(begin, end)
	as := slices.IndexFunc(words, func(t *pg.ScanToken) bool { return t.Token == pg.Token_AS })
	p.Body = r.body(n.Query, int(words[as+1].Start), end)
	return p
}

// typeOf is the name of a parameter's type; lengths do not matter for parameters.
func typeOf(t *pg.TypeName, at int32) string {
	names := texts(t.GetNames())
	if len(names) == 2 && names[0] == "pg_catalog" {
		names = names[1:]
	}
	if len(names) != 1 || t.Setof || t.PctType {
		halt(at, stateUnsupported, "use PostgreSQL's own types", "type %s is not supported", strings.Join(names, "."))
	}
	if len(t.ArrayBounds) > 0 {
		return "_" + names[0]
	}
	return names[0]
}

// texts are the parts of a name.
func texts(list []*pg.Node) []string {
	all := make([]string, len(list))
	for i, n := range list {
		all[i] = n.GetString_().GetSval()
	}
	return all
}

// The bits of a cursor's options (CURSOR_OPT_* of PostgreSQL's parsenodes.h).
const (
	cursorBinary = 0x01
	cursorScroll = 0x02
	cursorHold   = 0x20
)

func (r *reader) declare(n *pg.DeclareCursorStmt, begin, end int) Command {
	if n.Options&cursorScroll != 0 {
		halt(int32(begin), stateUnsupported, "leave SCROLL out", "cursors go forward only")
	}
	words := r.words(begin, end)
	from := slices.IndexFunc(words, func(t *pg.ScanToken) bool { return t.Token == pg.Token_FOR })
	return Declare{Name: n.Portalname, Binary: n.Options&cursorBinary != 0, Hold: n.Options&cursorHold != 0,
		Body: r.body(n.Query, int(words[from+1].Start), end)}
}

func fetch(n *pg.FetchStmt, begin int) Command {
	const all = 1<<63 - 1
	if n.Direction != pg.FetchDirection_FETCH_FORWARD || n.HowMany < 1 {
		halt(int32(begin), stateUnsupported, "write FETCH n or FETCH ALL", "cursors go forward only")
	}
	f := Fetch{Name: n.Portalname, Move: n.Ismove, All: n.HowMany == all, Count: n.HowMany}
	if f.All {
		f.Count = 0
	}
	return f
}

// cancelForm is a statement that cancels a session as PostgreSQL's printer writes it.
func cancelForm() *regexp.Regexp {
	return regexp.MustCompile(`^SELECT (?:pg_catalog\.)?(pg_terminate_backend|pg_cancel_backend)\(` +
		`(?:(?:pg_stat_activity\.)?pid\)(?: AS (\w+))? FROM (?:pg_catalog\.)?pg_stat_activity WHERE (?:pg_stat_activity\.)?pid = )?` +
		`(?:'?(\d{1,9})'?|\$(\d{1,5}))(?:::int(?:4|eger)?)?\)?(?: AS (\w+))?$`)
}

// cancel recognises a whole statement that cancels a session.
func (r *reader) cancel(n *pg.Node) (Cancel, bool) {
	m := calls(n, "_backend", cancelForm)
	if m == nil {
		return Cancel{}, false
	}
	c := Cancel{Terminate: m[1] == "pg_terminate_backend", Column: m[1], Listed: len(n.GetSelectStmt().FromClause) > 0}
	for _, alias := range []string{m[2], m[5]} {
		if alias != "" {
			c.Column = alias
		}
	}
	pid, _ := strconv.ParseInt(m[3], 10, 32) // "" where it is a parameter
	c.Parameter, _ = strconv.Atoi(m[4])
	c.PID = int32(pid)
	return c, true
}

// unlock recognises a whole statement that gives up all advisory locks.
func unlock(n *pg.Node) (Unlock, bool) {
	m := calls(n, "pg_advisory_unlock_all", func() *regexp.Regexp {
		return regexp.MustCompile(`^SELECT (?:pg_catalog\.)?(pg_advisory_unlock_all)\(\)(?: AS (\w+))?$`)
	})
	if m == nil {
		return Unlock{}, false
	}
	return Unlock{Column: cmp.Or(m[2], m[1])}, true
}

// calls matches a query whose only output is the call of a function of a name that ends so, as PostgreSQL's printer writes it; nil if it
// is another.
func calls(n *pg.Node, suffix string, form func() *regexp.Regexp) []string {
	s := n.GetSelectStmt()
	if len(s.TargetList) != 1 || len(s.FromClause) > 1 {
		return nil
	}
	call := s.TargetList[0].GetResTarget().GetVal().GetFuncCall()
	if call == nil || !strings.HasSuffix(strings.Join(texts(call.Funcname), "."), suffix) {
		return nil
	}
	text, err := printed(n)
	if err != nil {
		return nil
	}
	return form().FindStringSubmatch(text)
}

// printed is the text of a query.
func printed(n *pg.Node) (string, error) {
	const version = 170007 // of the grammar; the printer takes no other
	return pg.Deparse(&pg.ParseResult{Version: version, Stmts: []*pg.RawStmt{{Stmt: n}}})
}
