package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Environment is what the process was started with; a value, so that tests bring their own.
type Environment map[string]string

// ParseEnvironment turns os.Environ's lines into an Environment.
func ParseEnvironment(lines []string) Environment {
	env := Environment{}
	for _, line := range lines {
		if name, value, ok := strings.Cut(line, "="); ok {
			env[name] = value
		}
	}
	return env
}

// Load reads the file, lets the environment override it and checks the result. The error names everything that is
// wrong, each with its line and column or with the variable that it came from. An empty path means that the environment
// says it all. It is an [Error].
func Load(path string, env Environment) (*Config, error) {
	l := &loader{path: path, config: New(), where: map[string]string{}}
	if err := l.readFile(); err != nil {
		return nil, Wrong(err)
	}
	l.readEnvironment(env)
	l.placeAnchor(env)
	if len(l.problems) == 0 {
		l.check()
	}
	if len(l.problems) > 0 {
		return nil, Wrong(errors.Join(l.problems...))
	}
	return l.config, nil
}

// placeAnchor sets where the anchor is by default: where systemd keeps the service's state, else next to the configuration file. Variables
// alone have no such place.
func (l *loader) placeAnchor(env Environment) {
	c := &l.config.Control
	state, _, _ := strings.Cut(env["STATE_DIRECTORY"], ":") // systemd.exec(5): the directories of StateDirectory=
	switch {
	case c.Anchor == NoAnchor:
		c.Anchor = ""
	case c.Anchor != "":
	case state != "":
		c.Anchor, c.anchorDefault = filepath.Join(state, "anchor"), true
	case l.path != "":
		c.Anchor, c.anchorDefault = l.path+".anchor", true
	}
}

// loader fills in a configuration. It remembers where each key was written, for messages, and what is wrong.
type loader struct {
	path     string
	config   *Config
	where    map[string]string // key -> "noisegate.yaml:3:12: http.listen" or "NOISEGATE_HTTP_LISTEN"
	problems []error
}

// wrong notes what is wrong with a key's value.
func (l *loader) wrong(key, format string, args ...any) {
	where, written := l.where[key]
	switch {
	case written:
	case l.path != "":
		where = l.path + ": " + key
	default:
		where = key + " (" + variableName(key) + ")"
	}
	l.problems = append(l.problems, fmt.Errorf("%s: %s", where, fmt.Sprintf(format, args...)))
}

func (l *loader) readFile() error {
	if l.path == "" {
		return nil
	}
	source, err := os.ReadFile(l.path)
	if err != nil {
		return fmt.Errorf("cannot read the configuration: %w", err)
	}
	file, err := parser.ParseBytes(source, 0)
	if err != nil {
		var y yaml.Error
		if errors.As(err, &y) && y.GetToken() != nil {
			return fmt.Errorf("%s: %s", l.at(y.GetToken()), y.GetMessage())
		}
		return fmt.Errorf("%s: %w", l.path, err)
	}
	written := map[string]string{}
	for _, doc := range file.Docs {
		if doc.Body != nil {
			l.collect("", doc.Body, written)
		}
	}
	known := map[string]func(string) error{}
	for _, s := range l.config.settings() {
		known[s.key] = s.set
	}
	for _, key := range slices.Sorted(maps.Keys(written)) {
		set, ok := known[key]
		if !ok {
			l.wrong(key, "%s", unknown(key))
		} else if err := set(l.beside(key, written[key])); err != nil {
			l.wrong(key, "%s", err)
		}
	}
	return nil
}

// beside is the value of a key of the file. The name of another file is relative to the directory of this one, wherever the program
// was started: a variable's is relative to where that was.
func (l *loader) beside(key, value string) string {
	if !namesFile(key) || value == "" || filepath.IsAbs(value) {
		return value
	}
	return filepath.Join(filepath.Dir(l.path), value)
}

// namesFile reports whether the value of a key is the name of a file that must be there. An anchor need not be: one that
// moved would be begun anew without a word.
func namesFile(key string) bool { return strings.HasSuffix(key, "_file") }

func (l *loader) at(t *token.Token) string {
	return fmt.Sprintf("%s:%d:%d", l.path, t.Position.Line, t.Position.Column)
}

// collect gathers the scalars below a node, and where they stand. A key without a value keeps its default.
func (l *loader) collect(key string, node ast.Node, written map[string]string) {
	switch n := node.(type) {
	case *ast.MappingNode:
		for _, value := range n.Values {
			l.collect(key, value, written)
		}
	case *ast.MappingValueNode:
		name := n.Key.GetToken()
		inner := strings.TrimPrefix(key+"."+name.Value, ".")
		l.where[inner] = l.at(name) + ": " + inner
		if dataset, ok := strings.CutPrefix(inner, "datasets."); ok && key == "datasets" {
			l.config.Datasets[dataset] = NewDataset()
		}
		l.collect(inner, n.Value, written)
	case *ast.NullNode:
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		written[key] = n.GetToken().Value
	default: // lists, anchors, tags: nothing in this file needs them
		if key == "" {
			l.problems = append(l.problems, fmt.Errorf("%s: the file must be made of keys and values", l.at(n.GetToken())))
			return
		}
		l.wrong(key, "must be a single value")
	}
}

// readEnvironment sets what variables name.
func (l *loader) readEnvironment(env Environment) {
	l.addDatasets(env)
	known := map[string]bool{}
	for _, s := range l.config.settings() {
		variable := variableName(s.key)
		known[variable] = true
		if value, given := env[variable]; given {
			l.where[s.key] = variable
			if err := s.set(value); err != nil {
				l.wrong(s.key, "%s", err)
			}
		}
	}
	for _, variable := range slices.Sorted(maps.Keys(env)) {
		rest, ours := strings.CutPrefix(variable, prefix)
		section, _, _ := strings.Cut(rest, "_")
		if ours && slices.Contains(sections(), section) && !known[variable] {
			l.problems = append(l.problems, fmt.Errorf("%s: %s", variable, unknown(variable)))
		}
	}
}

// addDatasets adds those that only the environment names: they are known by their DSN's variable. A variable that can be another DSN of a
// dataset, as NOISEGATE_DATASETS_CENSUS_PREPARE_DSN of census, is that.
func (l *loader) addDatasets(env Environment) {
	taken := map[string]bool{}
	for name := range l.config.Datasets {
		taken[variableName(datasetKey(name, "dsn"))] = true
	}
	variableOf := func(name string) string { return prefix + "DATASETS_" + name + "_DSN" }
	for variable := range env {
		name, isDataset := strings.CutPrefix(variable, prefix+"DATASETS_")
		name, isDSN := strings.CutSuffix(name, "_DSN")
		if !isDataset || !isDSN || taken[variable] {
			continue
		}
		another := false
		for _, which := range []string{"_PREPARE", "_CATALOG"} {
			of, found := strings.CutSuffix(name, which)
			_, given := env[variableOf(of)]
			another = another || found && (given || taken[variableOf(of)])
		}
		if !another {
			l.config.Datasets[strings.ToLower(name)] = NewDataset()
		}
	}
}
