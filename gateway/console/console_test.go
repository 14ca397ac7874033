package console

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
)

// maxSize is how much of the console goes over the wire, in bytes: what a first visit loads.
const maxSize = 300_000

// The whole console, compressed, stays within its size, and compresses to what it is.
func TestSize(t *testing.T) {
	size := 0
	err := fs.WalkDir(files, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, ok := Find(path.Base(name))
		if !ok {
			t.Errorf("%s is not served", name)
			return nil
		}
		reader, err := gzip.NewReader(bytes.NewReader(file.Gzip))
		if err != nil {
			return err
		}
		if again, err := io.ReadAll(reader); err != nil || !bytes.Equal(again, file.Body) {
			t.Errorf("%s decompresses to something else: %v", name, err)
		}
		if file.GzipETag() == file.ETag {
			t.Errorf("%s has one tag for two representations", name)
		}
		size += len(file.Gzip)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes compressed", size)
	if size > maxSize || size < maxSize/20 {
		t.Errorf("the console has %d bytes compressed, want at most %d", size, maxSize)
	}
}

// The built files load nothing from elsewhere, and need no exception of the policy: no script, style or handler stands in the page, and no
// code is made of text. (Preact uses innerHTML for dangerouslySetInnerHTML, which no source here names: the policy's trusted types would
// stop it.)
//
// covers: A77
func TestBuiltFilesStandAlone(t *testing.T) {
	address := regexp.MustCompile(`(?i)\b(?:https?|wss?)://[^\s"'` + "`" + `)]*`)
	inline := regexp.MustCompile(`(?is)<script(?:\s[^>]*)?>\s*[^<\s]|<style|\son\w+\s*=|\sstyle\s*=`)
	fromText := regexp.MustCompile(`\beval\(|new Function\(|document\.write|\.outerHTML\s*=[^=]|insertAdjacentHTML|@import`)
	for _, name := range []string{"index.html", "console.js", "edits.js", "console.css", "icon.svg"} {
		file, ok := Find(name)
		if !ok {
			t.Fatalf("there is no %s", name)
		}
		for _, found := range address.FindAllString(string(file.Body), -1) {
			if !strings.HasPrefix(found, "http://www.w3.org/") { // names of namespaces, which nobody loads
				t.Errorf("%s names %s", name, found)
			}
		}
		if name == "index.html" && inline.Match(file.Body) {
			t.Errorf("the page has something inline: %s", inline.Find(file.Body))
		}
		if found := fromText.Find(file.Body); found != nil {
			t.Errorf("%s has %s", name, found)
		}
	}
	if strings.Contains(Policy, "unsafe") || !strings.HasPrefix(Policy, "default-src 'none'; ") {
		t.Errorf("the policy is %s", Policy)
	}
}

// What the page loads is served.
func TestPageFindsItsFiles(t *testing.T) {
	page, _ := Find("")
	links := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(string(page.Body), -1)
	if len(links) < 3 {
		t.Fatalf("the page loads %v", links)
	}
	for _, link := range append(links, []string{"", Root + "/edits.js"}) { // and what the form loads, see src/form.tsx
		name, ok := strings.CutPrefix(link[1], Root+"/")
		if _, found := Find(name); !ok || !found {
			t.Errorf("the page loads %s", link[1])
		}
	}
}
