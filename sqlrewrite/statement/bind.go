package statement

import (
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"noisegate.example/sqlrewrite/internal/parse"
)

const stateBadText = "22P02"

// Argument is the value of a parameter.
type Argument struct {
	Type string // PostgreSQL's name without schema, as int4; _int4 is an array of them
	Null bool
	Text string // otherwise: in PostgreSQL's text form
}

// Bind gives a query with a constant in place of each $n: arguments[n-1], as it would be written in the text. So a question
// with parameters is the same question as one with constants, and each replays the other's releases. The constants are put into
// the parse tree; what is printed of it is parsed again and must be that tree. Its errors are a [*Refusal] without a position.
func Bind(query string, arguments []Argument) (string, error) {
	tree, err := parse.Tree(query, parse.Limits{Bytes: MaxBytes, Tokens: maxTokens})
	if err != nil {
		return "", unplaced(ofText(query, err))
	}
	var text string
	if refused := guarded("", func() { text = bound(tree, arguments) }); refused != nil {
		return "", unplaced(refused)
	}
	return text, nil
}

func unplaced(r *Refusal) *Refusal {
	r.Position = 0
	return r
}

func bound(tree *pg.ParseResult, arguments []Argument) string {
	grown := 0
	eachParameter(tree.ProtoReflect(), func(p *pg.ParamRef) {
		if n := int(p.Number); n >= 1 && n <= len(arguments) {
			if grown += len(arguments[n-1].Text); grown > MaxBytes { // before anything is copied
				halt(-1, stateTooMany, bindHint, "the values have more than %d bytes where they are written into the text", MaxBytes)
			}
		}
	})
	replaceParameters(tree.ProtoReflect(), arguments, false)
	text, err := pg.Deparse(tree)
	if err != nil {
		halt(-1, stateUnsupported, bindHint, "this statement cannot be asked with parameters")
	}
	text = plainStrings(text)
	again, err := parse.Tree(text, parse.Limits{Bytes: 2 * MaxBytes, Tokens: 2 * maxTokens})
	if err != nil {
		halt(-1, stateUnsupported, bindHint, "this statement cannot be asked with parameters")
	}
	if !sameTree(tree, again) {
		halt(-1, stateUnsupported, bindHint, "this statement cannot be asked with parameters")
	}
	return text
}

// plainStrings writes strings that the printer gives a prefix, since there is a backslash in them, without one.
func plainStrings(text string) string {
	scan, err := pg.Scan(text)
	if err != nil {
		return text // which is parsed next
	}
	var b strings.Builder
	end := 0
	for _, t := range scan.Tokens {
		if word := text[t.Start:t.End]; t.Token == pg.Token_SCONST && strings.HasPrefix(word, "E'") {
			b.WriteString(text[end:t.Start])
			b.WriteString(strings.ReplaceAll(word[1:], `\\`, `\`))
			end = int(t.End)
		}
	}
	return b.String() + text[end:]
}

const bindHint = "write the values into the text"

// replaceParameters puts constants in place of parameters. A constant that is cast in the text anyway needs no type of its own.
func replaceParameters(m protoreflect.Message, arguments []Argument, cast bool) {
	if n, ok := m.Interface().(*pg.Node); ok {
		if p := n.GetParamRef(); p != nil {
			if p.Number < 1 || int(p.Number) > len(arguments) {
				halt(-1, stateNoParameter, "", "there is no parameter $%d", p.Number)
			}
			n.Node = constantOf(arguments[p.Number-1], int(p.Number), cast).Node
			return
		}
	} else {
		_, cast = m.Interface().(*pg.TypeCast)
	}
	eachMessage(m, func(child protoreflect.Message) { replaceParameters(child, arguments, cast) })
}

// eachParameter calls f for each $n.
func eachParameter(m protoreflect.Message, f func(*pg.ParamRef)) {
	if n, ok := m.Interface().(*pg.Node); ok {
		if p := n.GetParamRef(); p != nil {
			f(p)
			return
		}
	}
	eachMessage(m, func(child protoreflect.Message) { eachParameter(child, f) })
}

// eachMessage calls f for each message directly within one.
func eachMessage(m protoreflect.Message, f func(protoreflect.Message)) {
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.Message() == nil:
		case field.IsList():
			for i := range v.List().Len() {
				f(v.List().Get(i).Message())
			}
		default:
			f(v.Message())
		}
		return true
	})
}

// sameTree reports whether two trees are the same but for the places of their words.
func sameTree(a, b proto.Message) bool {
	a, b = proto.Clone(a), proto.Clone(b)
	clearPlaces(a.ProtoReflect())
	clearPlaces(b.ProtoReflect())
	return proto.Equal(a, b)
}

// clearPlaces takes away where things stand in a text.
func clearPlaces(m protoreflect.Message) {
	m.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if name := string(field.Name()); field.Kind() == protoreflect.Int32Kind && (strings.HasSuffix(name, "location") ||
			name == "stmt_len") {
			m.Clear(field)
		}
		return true
	})
	eachMessage(m, clearPlaces)
}

// constantOf writes an argument as a constant of SQL.
func constantOf(a Argument, number int, cast bool) *pg.Node {
	if a.Null {
		return &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Isnull: true}}}
	}
	if element, isArray := strings.CutPrefix(a.Type, arrayPrefix); isArray {
		return arrayOf(element, a.Text, number, cast)
	}
	switch a.Type {
	case "bool":
		return boolConstant(a, number)
	case "int2", "int4", "int8", "oid":
		return integerConstant(a, number)
	case "float4", "float8", "numeric":
		return numberConstant(a, number)
	case "date", "time", "timestamp", "timestamptz", "interval", "uuid":
		if cast {
			return textConstant(a.Text)
		}
		return &pg.Node{Node: &pg.Node_TypeCast{TypeCast: &pg.TypeCast{Arg: textConstant(a.Text), TypeName: typeNamed(a.Type)}}}
	default:
		return textConstant(a.Text)
	}
}

// arrayPrefix begins PostgreSQL's names of array types.
const arrayPrefix = "_"

// arrayOf writes ARRAY[...] with a constant for each element of an array of one dimension. An array without elements is refused: it
// has no type of its own.
func arrayOf(element, text string, number int, cast bool) *pg.Node {
	texts, ok := parse.ArrayTexts(text)
	switch {
	case !ok:
		halt(-1, stateBadText, "arrays of one dimension are taken", "malformed array literal in parameter $%d", number)
	case len(texts) == 0:
		halt(-1, stateUnsupported, "leave the condition out, or write false", "an array without elements as parameter $%d", number)
	}
	items := make([]*pg.Node, len(texts))
	for i, one := range texts {
		a := Argument{Type: element, Null: one == nil}
		if one != nil {
			a.Text = *one
		}
		items[i] = constantOf(a, number, cast)
	}
	return &pg.Node{Node: &pg.Node_AArrayExpr{AArrayExpr: &pg.A_ArrayExpr{Elements: items}}}
}

// typeNamed is a type as the grammar has it: words of the grammar have a schema, other names none.
func typeNamed(name string) *pg.TypeName {
	var names []*pg.Node
	if name != "date" && name != "uuid" {
		names = append(names, pg.MakeStrNode("pg_catalog"))
	}
	return &pg.TypeName{Names: append(names, pg.MakeStrNode(name)), Typemod: -1}
}

func textConstant(text string) *pg.Node {
	return &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Val: &pg.A_Const_Sval{Sval: &pg.String{Sval: text}}}}}
}

func boolConstant(a Argument, number int) *pg.Node {
	text := strings.ToLower(strings.TrimSpace(a.Text))
	is := slices.Contains([]string{"t", "true", "y", "yes", "on", "1"}, text)
	if !is && !slices.Contains([]string{"f", "false", "n", "no", "off", "0"}, text) {
		noValue("boolean", number)
	}
	return &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Val: &pg.A_Const_Boolval{Boolval: &pg.Boolean{Boolval: is}}}}}
}

func noValue(name string, number int) {
	halt(-1, stateBadText, "", "invalid input syntax for type %s in parameter $%d", name, number)
}

func integerConstant(a Argument, number int) *pg.Node {
	bits := map[string]int{"int2": 16, "int4": 32, "int8": 64, "oid": 64}[a.Type]
	n, err := strconv.ParseInt(strings.TrimSpace(a.Text), 10, bits)
	if err != nil {
		noValue("integer", number)
	}
	return decimalConstant(strconv.FormatInt(n, 10))
}

// maxDigits bounds a number of a parameter: the text of one has no more digits than a column takes.
const maxDigits = 400

func numberConstant(a Argument, number int) *pg.Node {
	text := strings.TrimPrefix(strings.TrimSpace(a.Text), "+")
	if !regexp.MustCompile(`^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$`).MatchString(text) || len(text) > maxDigits {
		noValue("numeric", number)
	}
	return decimalConstant(text)
}

// decimalConstant is a number as the scanner reads it: an integer of 32 bits, or a number that keeps its text.
func decimalConstant(text string) *pg.Node {
	if whole, ok := new(big.Int).SetString(text, 10); ok {
		text = whole.String()
		if n := whole.Int64(); whole.IsInt64() && n == int64(int32(n)) {
			return pg.MakeAConstIntNode(n, 0)
		}
	}
	return &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Val: &pg.A_Const_Fval{Fval: &pg.Float{Fval: text}}}}}
}

// ParameterTypes infers the types of a query's parameters from what they are compared with: PostgreSQL's names without schema, "" where
// nothing says it. Columns are the types (as [noisegate.example/catalog.Type]) that columns of a name have in the exposed tables.
func ParameterTypes(query string, columns map[string][]string) ([]string, error) {
	tree, err := parse.Tree(query, parse.Limits{Bytes: MaxBytes, Tokens: maxTokens})
	if err != nil {
		return nil, ofText(query, err)
	}
	t := &typing{columns: columns}
	t.walk(tree.ProtoReflect())
	return t.types, nil
}

// typing is the inference of one query; the first word on a parameter counts.
type typing struct {
	columns map[string][]string
	types   []string
}

func (t *typing) say(n *pg.Node, name string) {
	p := n.GetParamRef()
	if p == nil || p.Number < 1 || p.Number > maxParameters || name == "" {
		return
	}
	for len(t.types) < int(p.Number) {
		t.types = append(t.types, "")
	}
	if t.types[p.Number-1] == "" {
		t.types[p.Number-1] = name
	}
}

func (t *typing) walk(m protoreflect.Message) {
	switch n := m.Interface().(type) {
	case *pg.TypeCast:
		t.say(n.Arg, namedBy(n.TypeName))
	case *pg.SelectStmt:
		t.say(n.LimitCount, "int8")
		t.say(n.LimitOffset, "int8")
	case *pg.A_Expr:
		if n.Kind == pg.A_Expr_Kind_AEXPR_OP_ANY || n.Kind == pg.A_Expr_Kind_AEXPR_OP_ALL {
			if name := t.typeOf(n.Lexpr); name != "" {
				t.say(n.Rexpr, arrayPrefix+name)
			}
			break
		}
		sides := append(operands(n.Lexpr), operands(n.Rexpr)...)
		for _, one := range sides {
			for _, other := range sides {
				if one.GetParamRef() != nil && one != other {
					t.say(one, t.typeOf(other))
				}
			}
		}
	}
	eachMessage(m, t.walk)
}

// namedBy is what a cast names its type: an array's begins with an underscore; "" for arrays of more dimensions.
func namedBy(n *pg.TypeName) string {
	name := ""
	if names := n.GetNames(); len(names) > 0 {
		name = names[len(names)-1].GetString_().GetSval()
	}
	switch bounds := len(n.GetArrayBounds()); {
	case name == "" || bounds > 1:
		return ""
	case bounds == 1:
		return arrayPrefix + name
	default:
		return name
	}
}

// operands are one side of an operator: the members of a list, or the side itself.
func operands(n *pg.Node) []*pg.Node {
	if list := n.GetList(); list != nil {
		return list.Items
	}
	if n == nil {
		return nil
	}
	return []*pg.Node{n}
}

// typeOf is the type of what a parameter stands beside, where that is plain.
func (t *typing) typeOf(n *pg.Node) string {
	switch {
	case n.GetColumnRef() != nil:
		fields := n.GetColumnRef().Fields
		return t.columnType(fields[len(fields)-1].GetString_().GetSval())
	case n.GetTypeCast() != nil:
		return namedBy(n.GetTypeCast().TypeName)
	case n.GetAConst() != nil:
		switch c := n.GetAConst(); {
		case c.GetIval() != nil:
			return "int4"
		case c.GetFval() != nil:
			return "numeric"
		case c.GetBoolval() != nil:
			return "bool"
		}
	case n.GetAExpr() != nil && n.GetAExpr().Kind == pg.A_Expr_Kind_AEXPR_OP:
		for _, side := range append(operands(n.GetAExpr().Lexpr), operands(n.GetAExpr().Rexpr)...) {
			if name := t.typeOf(side); name != "" {
				return name
			}
		}
	case n.GetFuncCall() != nil:
		names := n.GetFuncCall().Funcname
		switch names[len(names)-1].GetString_().GetSval() {
		case "count":
			return "int8"
		case "sum", "avg", "extract", "date_part":
			return "numeric"
		case "min", "max", "abs", "coalesce", "date_trunc":
			if args := n.GetFuncCall().Args; len(args) > 0 {
				return t.typeOf(args[len(args)-1])
			}
		case "date_bin":
			if args := n.GetFuncCall().Args; len(args) > 1 {
				return t.typeOf(args[1])
			}
		case "timezone":
			if args := n.GetFuncCall().Args; len(args) > 1 {
				return map[string]string{"timestamp": "timestamptz", "timestamptz": "timestamp"}[t.typeOf(args[1])]
			}
		}
	}
	return ""
}

// columnType is the type that all exposed columns of a name have.
func (t *typing) columnType(name string) string {
	types := t.columns[name]
	if len(types) != 1 {
		return ""
	}
	switch types[0] {
	case "smallint":
		return "int2"
	case "integer":
		return "int4"
	case "bigint":
		return "int8"
	case "real":
		return "float4"
	case "double precision":
		return "float8"
	case "boolean":
		return "bool"
	case "timestamp without time zone":
		return "timestamp"
	case "timestamp with time zone":
		return "timestamptz"
	case "numeric", "date", "uuid":
		return types[0]
	default:
		return "text"
	}
}
