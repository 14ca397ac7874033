// Package docs holds the documentation as its readers see it: pages of HTML, made from the Markdown in this directory.
//
// It knows Markdown and where a link leads. It does not know who serves the pages, nor what they say.
package docs

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"noisegate.example/api/python"
)

//go:embed *.md *.svg *.png *.css sql/*.md decisions/*.md
var files embed.FS

// Root is where the pages are served: the index there, the page of fit.md at /docs/fit. Links lead to these addresses.
const Root = "/docs"

// File is what one address answers.
type File struct {
	Kind string // a media type
	Body []byte
	ETag string
}

// Find is the file of a name, as the address has it behind [Root]: "fit" and "fit.md" are one page, "" and "README" are the index, and a
// folder is its README. The pages are made once, when the first one is asked for.
func Find(name string) (File, bool) {
	file, ok := pages()[name]
	return file, ok
}

// pages are all files by name.
var pages = sync.OnceValue(func() map[string]File {
	all := make(map[string]File)
	_ = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		switch path.Ext(name) {
		case ".svg":
			all[name] = newFile("image/svg+xml", content)
		case ".png":
			all[name] = newFile("image/png", content)
		case ".css":
			all[name] = newFile("text/css; charset=utf-8", content)
		default:
			page := newFile("text/html; charset=utf-8", rendered(name, content))
			all[name], all[strings.TrimSuffix(name, ".md")] = page, page
			if path.Base(name) == "README.md" {
				all[strings.TrimPrefix(path.Dir(name), ".")] = page
			}
		}
		return nil
	}) // embedded files can be read
	all["noisegate.py"] = newFile("text/x-python; charset=utf-8", python.Client())
	return all
})

func newFile(kind string, body []byte) File {
	sum := sha256.Sum256(body)
	return File{Kind: kind, Body: body, ETag: `"` + hex.EncodeToString(sum[:16]) + `"`}
}

// frame is a page around its text. What it loads is its style, from the same place.
var frame = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}} - Noisegate</title>
<link rel="stylesheet" href="` + Root + `/style.css">
</head>
<body>
<nav><a href="` + Root + `">Documentation</a> <a href="` + Root + `/glossary">Glossary</a> <a href="` + Root + `/api">OpenAPI</a></nav>
<main>
{{.Text}}</main>
</body>
</html>
`))

// rendered is the page of a Markdown file. HTML inside of Markdown is left out.
func rendered(name string, markdown []byte) []byte {
	language := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	tree := language.Parser().Parse(text.NewReader(markdown), parser.WithContext(parser.NewContext(parser.WithIDs(anchors{}))))
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function has no errors
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			n.Destination = []byte(address(name, string(n.Destination)))
		case *ast.Image:
			n.Destination = []byte(address(name, string(n.Destination)))
		}
		return ast.WalkContinue, nil
	})
	var body, page bytes.Buffer
	if err := language.Renderer().Render(&body, markdown, tree); err != nil {
		panic(fmt.Sprintf("docs: %s: %v", name, err)) // a buffer takes everything
	}
	title, _, _ := strings.Cut(strings.TrimPrefix(string(markdown), "# "), "\n")
	if err := frame.Execute(&page, struct {
		Title string
		Text  template.HTML
	}{title, template.HTML(body.String())}); err != nil { //nolint:gosec // rendered from files of this repository, without their HTML
		panic(fmt.Sprintf("docs: %s: %v", name, err))
	}
	return page.Bytes()
}

// address is where a link of a page leads. Links to files that are not served lead to the index.
func address(from, link string) string {
	if link == "" || strings.HasPrefix(link, "#") || strings.HasPrefix(link, "/") || strings.Contains(link, "://") {
		return link
	}
	name, anchor, _ := strings.Cut(link, "#")
	if anchor != "" {
		anchor = "#" + anchor
	}
	to := path.Join(path.Dir(from), name)
	if _, err := fs.Stat(files, to); err != nil {
		return Root
	}
	to = strings.TrimSuffix(to, ".md")
	return path.Join(Root, strings.TrimSuffix(to, "README")) + anchor
}

// anchors are the names of headings, as hosts of repositories make them: links inside of the Markdown use these.
type anchors map[string]bool

// Generate implements [parser.IDs].
func (a anchors) Generate(heading []byte, _ ast.NodeKind) []byte {
	id := strings.ReplaceAll(unnamed.ReplaceAllString(strings.ToLower(string(heading)), ""), " ", "-")
	for n, first := 1, id; a[id]; n++ {
		id = fmt.Sprint(first, "-", n)
	}
	a[id] = true
	return []byte(id)
}

// Put implements [parser.IDs].
func (a anchors) Put(id []byte) { a[string(id)] = true }

var unnamed = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
