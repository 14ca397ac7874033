package statement

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// copy reads COPY (query) TO STDOUT.
func (r *reader) copy(n *pg.CopyStmt, begin, end int) Command {
	at := int32(begin)
	switch {
	case n.IsFrom:
		halt(at, stateReadOnly, "", "cannot execute COPY FROM in a read-only transaction")
	case n.IsProgram || n.Filename != "":
		halt(at, stateUnsupported, "write COPY (SELECT ...) TO STDOUT, or \\copy in psql", "COPY to a file or program is not supported")
	case n.Query == nil:
		halt(at, stateUnsupported, "write COPY (SELECT ...) TO STDOUT", "COPY of a table is not supported")
	}
	words := r.words(begin, end)
	first := slices.IndexFunc(words, func(t *pg.ScanToken) bool { return t.Token == pg.Token_ASCII_40 })
	last := closing(words, first)
	c := r.copyOptions(n.Options, at)
	c.Body = r.body(n.Query, int(words[first].End), int(words[last].Start))
	return c
}

// closing is the place of the parenthesis that closes the one at a place; behind the last word where there is none.
func closing(words []*pg.ScanToken, first int) int {
	depth := 0
	for i := first; i < len(words); i++ {
		switch words[i].Token {
		case pg.Token_ASCII_40:
			depth++
		case pg.Token_ASCII_41:
			depth--
		default:
		}
		if depth == 0 {
			return i
		}
	}
	return len(words)
}

// copyOptions reads the options of COPY TO and completes them.
func (r *reader) copyOptions(options []*pg.Node, at int32) Copy {
	c := Copy{}
	seen := map[string]string{}
	for _, node := range options {
		o := node.GetDefElem()
		name := strings.ToLower(o.Defname)
		if _, again := seen[name]; again {
			halt(o.Location, stateSyntax, "", "conflicting or redundant options")
		}
		if name == "force_quote" {
			seen[name] = ""
			c.ForceAll = o.Arg.GetAStar() != nil
			c.ForceQuote = texts(o.Arg.GetList().GetItems())
			continue
		}
		seen[name] = optionText(o)
	}
	switch format := seen["format"]; format {
	case "", "text":
		c.Delimiter, c.Null = '\t', `\N`
	case "csv":
		c.Format, c.Delimiter, c.Quote, c.Escape = CopyCSV, ',', '"', '"'
	case "binary":
		c.Format = CopyBinary
	default:
		halt(at, stateInvalid, "write text, csv or binary", "COPY format %q not recognized", format)
	}
	delete(seen, "format")
	c.apply(seen, at)
	return c
}

// apply checks what the options of COPY say, by PostgreSQL's rules.
func (c *Copy) apply(options map[string]string, at int32) {
	csv := func(name string) {
		if c.Format != CopyCSV {
			halt(at, stateUnsupported, "", "COPY %s requires CSV mode", name)
		}
	}
	notBinary := func(name string) {
		if c.Format == CopyBinary {
			halt(at, stateSyntax, "", "cannot specify %s in BINARY mode", name)
		}
	}
	if quote, ok := options["quote"]; ok {
		csv("QUOTE")
		c.Quote = oneByte(quote, "COPY quote", at)
		c.Escape = c.Quote
	}
	for name, value := range options {
		switch name {
		case "quote":
		case "delimiter":
			notBinary("DELIMITER")
			c.Delimiter = oneByte(value, "COPY delimiter", at)
		case "null":
			notBinary("NULL")
			if strings.ContainsAny(value, "\r\n") {
				halt(at, stateInvalid, "", "COPY null representation cannot use newline or carriage return")
			}
			c.Null = value
		case "header":
			notBinary("HEADER")
			c.Header = boolean(value, "header", at)
		case "escape":
			csv("ESCAPE")
			c.Escape = oneByte(value, "COPY escape", at)
		case "force_quote":
			csv("FORCE_QUOTE")
		case "encoding":
			if e := strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(value)); e != "utf8" && e != "unicode" {
				halt(at, stateInvalid, "write UTF8", "encoding %q is not supported", value)
			}
		default:
			halt(at, stateSyntax, "", "option %q not recognized", name)
		}
	}
	if c.Format != CopyBinary {
		c.distinct(at)
	}
}

// distinct makes sure that rows and values can be told apart.
func (c *Copy) distinct(at int32) {
	switch {
	case strings.IndexByte("\r\n", c.Delimiter) >= 0:
		halt(at, stateInvalid, "", "COPY delimiter cannot be newline or carriage return")
	case c.Format == CopyText && strings.IndexByte(`\.abcdefghijklmnopqrstuvwxyz0123456789`, c.Delimiter) >= 0:
		halt(at, stateInvalid, "", `COPY delimiter cannot be "%c"`, c.Delimiter)
	case c.Format == CopyCSV && c.Delimiter == c.Quote:
		halt(at, stateInvalid, "", "COPY delimiter and quote must be different")
	case strings.IndexByte(c.Null, c.Delimiter) >= 0:
		halt(at, stateInvalid, "", "COPY delimiter character must not appear in the NULL specification")
	case c.Format == CopyCSV && strings.IndexByte(c.Null, c.Quote) >= 0:
		halt(at, stateInvalid, "", "CSV quote character must not appear in the NULL specification")
	}
}

func oneByte(value, what string, at int32) byte {
	if len(value) != 1 || value[0] >= 0x80 {
		halt(at, stateUnsupported, "", "%s must be a single one-byte character", what)
	}
	return value[0]
}

// optionText is the value of an option as text; one without a value is true.
func optionText(o *pg.DefElem) string {
	switch v := o.Arg.GetNode().(type) {
	case nil:
		return "true"
	case *pg.Node_String_:
		return v.String_.Sval
	case *pg.Node_Boolean:
		if v.Boolean.Boolval {
			return "true"
		}
		return "false"
	case *pg.Node_Integer:
		if v.Integer.Ival == 0 {
			return "0"
		}
		return "1"
	}
	halt(o.Location, stateSyntax, "", "%s requires a simple value", o.Defname)
	return ""
}

func boolean(value, name string, at int32) bool {
	switch strings.ToLower(value) {
	case "true", "on", "1":
		return true
	case "false", "off", "0":
		return false
	}
	halt(at, stateSyntax, "", "%s requires a Boolean value", name)
	return false
}

// explain reads EXPLAIN: of its options, FORMAT decides how the estimate is written, and those that need a run are refused.
func (r *reader) explain(n *pg.ExplainStmt, begin, end int) Command {
	e := Explain{}
	for _, node := range n.Options {
		o := node.GetDefElem()
		switch name, value := strings.ToLower(o.Defname), optionText(o); name {
		case "analyze":
			if boolean(value, name, o.Location) {
				halt(o.Location, stateUnsupported, "leave ANALYZE out: EXPLAIN shows price and expected error, free",
					"EXPLAIN ANALYZE is not supported")
			}
		case "format":
			switch strings.ToLower(value) {
			case "text":
			case "json":
				e.JSON = true
			default:
				halt(o.Location, stateUnsupported, "write FORMAT TEXT or FORMAT JSON", "EXPLAIN format %q is not supported", value)
			}
		case "verbose", "costs", "settings", "generic_plan", "buffers", "wal", "timing", "summary", "memory":
			boolean(value, name, o.Location)
		default:
			halt(o.Location, stateSyntax, "", "unrecognized EXPLAIN option %q", name)
		}
	}
	words := r.words(begin, end)
	from := 1
	if len(n.Options) > 0 && words[1].Token == pg.Token_ASCII_40 {
		for words[from].Token != pg.Token_ASCII_41 { // options hold no parentheses
			from++
		}
		from++
	}
	for slices.Contains([]string{"ANALYZE", "ANALYSE", "VERBOSE"}, r.word(words[from])) {
		from++
	}
	e.Body = r.body(n.Query, int(words[from].Start), end)
	return e
}
