package catalog

import (
	"noisegate.example/internal/fault"
)

// Value is a value of a YAML file that is no policy, such as another system's metadata. It is one of: a scalar, null, a
// list, a mapping.
type Value struct {
	Kind   string         // what it is, for messages: a single value, nothing, a list, a mapping
	Scalar bool           // Text is what is written
	Text   string         // of a scalar
	List   []*Value       // of a list
	Fields []Field        // of a mapping, in the file's order, each key once
	Pos    fault.Position // in the file
}

// Field is an entry of a mapping; its key is always a scalar.
type Field struct {
	Key, Value *Value
}

// Field gives the value of a key, nil where the mapping has none.
func (v *Value) Field(key string) *Value {
	for _, f := range v.Fields {
		if f.Key.Text == key {
			return f.Value
		}
	}
	return nil
}

// ReadYAML reads a YAML file of another system, within the limits of policy files and of the same part of YAML. Of a key
// that is given twice the last value counts, as it does in the reader of Python. Errors are policy/invalid faults.
func ReadYAML(document string) (*Value, error) {
	root, err := readYAML(document, treeBuilder{lastWins: true})
	if err != nil {
		return nil, err
	}
	return valueOf(root), nil
}

func valueOf(n *node) *Value {
	v := &Value{Kind: n.kind.String(), Scalar: n.kind == plainNode || n.kind == textNode, Text: n.text, Pos: n.pos}
	for _, item := range n.items {
		v.List = append(v.List, valueOf(item))
	}
	for _, e := range n.entries {
		v.Fields = append(v.Fields, Field{valueOf(e.key), valueOf(e.value)})
	}
	return v
}
