package catalog

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"noisegate.example/internal/fault"
)

// Limits of a policy file. They are far above honest files and keep a hostile one from taking the process's memory.
const (
	maxDocument = 1 << 20 // bytes
	maxNodes    = 200_000 // values, after aliases are replaced by what they stand for
	maxNesting  = 32      // lists and mappings in each other
)

// node is a value of the file. Aliases are resolved: two aliases of one anchor share their node.
type node struct {
	kind    nodeKind
	text    string // textNode: the text; plainNode: as written
	items   []*node
	entries []entry
	pos     fault.Position
	size    int // values in it, itself included
}

type entry struct{ key, value *node }

type nodeKind int

const (
	plainNode nodeKind = iota // an unquoted scalar: number, date, truth value or text
	textNode                  // a scalar in quotes
	nullNode
	listNode
	mappingNode
)

func (k nodeKind) String() string {
	switch k {
	case plainNode, textNode:
		return "a single value"
	case nullNode:
		return "nothing"
	case listNode:
		return "a list"
	case mappingNode:
		return "a mapping"
	default:
		return "something else"
	}
}

// parseYAML reads one YAML document of the kind that policy files are: mappings, lists, scalars, anchors and aliases.
func parseYAML(document string) (*node, error) { return readYAML(document, treeBuilder{}) }

func readYAML(document string, b treeBuilder) (*node, error) {
	if len(document) > maxDocument {
		return nil, fault.PolicyInvalid(fault.Position{}, "the file is larger than 1 MiB",
			"take long domains from a public table: domain: {table: t, column: c}")
	}
	if pos, ok := firstBadRune(document); ok {
		return nil, fault.PolicyInvalid(pos, "the file is not plain UTF-8 text", "")
	}
	tokens := lexer.Tokenize(document)
	if pos, ok := tooDeep(tokens); ok {
		return nil, fault.PolicyInvalid(pos, "lists and mappings are nested too deeply", "")
	}
	var options []parser.Option
	if b.lastWins {
		options = append(options, parser.AllowDuplicateMapKey())
	}
	file, err := parser.Parse(tokens, 0, options...)
	if err != nil {
		return nil, yamlFault(err, document)
	}
	b.anchors = map[string]*node{}
	var docs []ast.Node
	for _, d := range file.Docs {
		if d.Body != nil {
			docs = append(docs, d.Body)
		}
	}
	switch len(docs) {
	case 0:
		return nil, fault.PolicyInvalid(fault.Position{}, "the file is empty", "")
	case 1:
		return b.build(docs[0])
	default:
		return nil, fault.PolicyInvalid(position(docs[1]), "the file holds more than one document", "write one file for each dataset")
	}
}

// firstBadRune finds what PostgreSQL or a terminal could not take: broken UTF-8 and control characters.
func firstBadRune(document string) (fault.Position, bool) {
	line, column := 1, 1
	for i, r := range document {
		_, width := utf8.DecodeRuneInString(document[i:])
		switch {
		case r == '\n':
			line, column = line+1, 0
		case r == utf8.RuneError && width == 1, r < ' ' && r != '\t' && r != '\r', r == 0x7f:
			return fault.Position{Line: line, Column: column}, true
		}
		column++
	}
	return fault.Position{}, false
}

// tooDeep counts what opens another level, without the recursion that the parser would need to find out: brackets that
// are open, and list or key marks on one line. Levels by indentation are few, because each needs a longer line than the last.
func tooDeep(tokens token.Tokens) (fault.Position, bool) {
	open, line, marks := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, marks = t.Position.Line, 0
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			open++
		case token.MappingEndType, token.SequenceEndType:
			open--
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			marks++
		default:
		}
		if open > maxNesting || marks > maxNesting || (open == 0 && t.Position.Column > 8*maxNesting && t.Position.IndentLevel > maxNesting) {
			return place(t), true
		}
	}
	return fault.Position{}, false
}

// yamlFault turns an error of the YAML library into ours: its message, without the picture of the source that it adds.
func yamlFault(err error, document string) error {
	var y yaml.Error
	if errors.As(err, &y) {
		pos := place(y.GetToken())
		return fault.PolicyInvalid(pos, "the file is not YAML: "+y.GetMessage(), slipIn(lineOf(document, pos.Line)))
	}
	return fault.PolicyInvalid(fault.Position{}, "the file is not YAML", "").WithCause(err)
}

func lineOf(document string, number int) string {
	lines := strings.Split(document, "\n")
	if number < 1 || number > len(lines) {
		return ""
	}
	return lines[number-1]
}

// slipIn is what a person most likely did wrong in a line that is no YAML, "" for nothing that is known.
func slipIn(line string) string {
	switch {
	case strings.HasPrefix(strings.TrimLeft(line, " "), "\t"):
		return "the line begins with a tab: indent with blanks"
	case strings.Contains(line, ">") || strings.Contains(line, "|"):
		return "put text with < > or | in quotes"
	default:
		return ""
	}
}

func place(t *token.Token) fault.Position {
	if t == nil || t.Position == nil {
		return fault.Position{}
	}
	return fault.Position{Line: t.Position.Line, Column: t.Position.Column}
}

func position(n ast.Node) fault.Position { return place(n.GetToken()) }

// treeBuilder turns the library's tree into nodes.
type treeBuilder struct {
	lastWins bool // a key may be given twice, and its last value counts
	anchors  map[string]*node
	depth    int
}

func (b *treeBuilder) build(n ast.Node) (*node, error) {
	b.depth++
	defer func() { b.depth-- }()
	if b.depth > 4*maxNesting {
		return nil, fault.PolicyInvalid(position(n), "lists and mappings are nested too deeply", "")
	}
	built, err := b.convert(n)
	if err != nil {
		return nil, err
	}
	if built.size > maxNodes {
		return nil, fault.PolicyInvalid(position(n), "the file holds too many values",
			"take long domains from a public table: domain: {table: t, column: c}")
	}
	return built, nil
}

func (b *treeBuilder) convert(n ast.Node) (*node, error) {
	leaf := &node{kind: plainNode, pos: position(n), size: 1}
	switch n := n.(type) {
	case *ast.NullNode:
		leaf.kind = nullNode
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		leaf.text = n.GetToken().Value
	case *ast.StringNode:
		leaf.text = n.Value
		if t := n.Token.Type; t == token.SingleQuoteType || t == token.DoubleQuoteType {
			leaf.kind = textNode
		}
	case *ast.SequenceNode:
		return b.list(n)
	case *ast.MappingNode:
		return b.mapping(leaf.pos, n.Values)
	case *ast.MappingValueNode:
		return b.mapping(leaf.pos, []*ast.MappingValueNode{n})
	case *ast.AnchorNode:
		return b.anchor(n)
	case *ast.AliasNode:
		return b.alias(n)
	default:
		return nil, fault.PolicyInvalid(leaf.pos, "this part of YAML is not read: "+strings.ToLower(n.Type().String()), "")
	}
	return leaf, nil
}

func (b *treeBuilder) list(n *ast.SequenceNode) (*node, error) {
	list := &node{kind: listNode, pos: position(n), size: 1}
	for _, value := range n.Values {
		item, err := b.build(value)
		if err != nil {
			return nil, err
		}
		list.items = append(list.items, item)
		list.size += item.size
	}
	return list, nil
}

func (b *treeBuilder) mapping(pos fault.Position, values []*ast.MappingValueNode) (*node, error) {
	m := &node{kind: mappingNode, pos: pos, size: 1}
	seen := map[string]int{}
	for _, v := range values {
		key, err := b.build(v.Key)
		if err != nil {
			return nil, err
		}
		if key.kind != plainNode && key.kind != textNode {
			return nil, fault.PolicyInvalid(key.pos, "a key must be a single word", "")
		}
		at, again := seen[key.text]
		if again && !b.lastWins {
			return nil, fault.PolicyInvalid(key.pos, "key "+fault.Quote(key.text)+" is given twice", "")
		}
		value, err := b.build(v.Value)
		switch {
		case err != nil:
			return nil, err
		case again:
			m.entries[at].value = value
		default:
			seen[key.text] = len(m.entries)
			m.entries = append(m.entries, entry{key, value})
		}
		m.size += key.size + value.size
	}
	if len(m.entries) > 0 && m.entries[0].key.pos.Line < m.pos.Line || len(m.entries) > 0 && pos.IsZero() {
		m.pos = m.entries[0].key.pos
	}
	return m, nil
}

// anchor remembers the value after it is built: an alias inside its own anchor stays unknown.
func (b *treeBuilder) anchor(n *ast.AnchorNode) (*node, error) {
	value, err := b.build(n.Value)
	if err == nil {
		b.anchors[n.Name.GetToken().Value] = value
	}
	return value, err
}

func (b *treeBuilder) alias(n *ast.AliasNode) (*node, error) {
	name := n.Value.GetToken().Value
	value, ok := b.anchors[name]
	if !ok {
		return nil, fault.PolicyInvalid(position(n), "there is no anchor &"+name+" before this alias", "")
	}
	return value, nil
}
