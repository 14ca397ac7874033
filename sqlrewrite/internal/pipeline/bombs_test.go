package pipeline_test

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// covers: A44
func TestBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // make test collects less
	snapshot := rewritetest.TownSnapshot(t)
	before := residentKiB(t)
	for name, shape := range parsetest.Bombs {
		for _, dialect := range []parse.Dialect{parse.DialectPostgres, parse.DialectMySQL} {
			dropBombs(t, snapshot, string(dialect)+", "+name, shape, dialect)
		}
	}
	if grown := residentKiB(t) - before; grown > 64<<10 {
		t.Errorf("memory grew by %d KiB", grown)
	}
}

func dropBombs(t *testing.T, snapshot *catalog.Snapshot, name string, shape func(n int) string, dialect parse.Dialect) {
	t.Helper()
	for i, size := range []int{1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 65 << 10, 64 << 10} {
		if (i+1)%rewritetest.OneIn(4) > 0 {
			continue
		}
		text := parsetest.Bomb(shape, size)
		var err error
		took := parsetest.Fastest(func() { _, err = parse.Parse(text, dialect) })
		if err == nil { // then bind it too: what names no table is refused there
			o := rewritetest.Sharp()
			o.Dialect = dialect
			took = parsetest.Fastest(func() { _, _, _ = pipeline.Read(text, snapshot, o) }) // TestBoundBombs looks at what it says
		}
		if took > parsetest.Longest {
			t.Errorf("%s, %d bytes: took %v", name, len(text), took)
		}
		switch code := fault.CodeOf(err); code {
		case "", fault.CodeTooComplex, fault.CodeUnsupported, fault.CodeSyntax, fault.CodeUnknownFunction:
		default:
			t.Errorf("%s, %d bytes: %s: %v", name, len(text), code, err)
		}
		if len(text) > parse.MaxBytes && fault.CodeOf(err) != fault.CodeTooComplex {
			t.Errorf("%s, %d bytes: got %v, want too-complex", name, len(text), err)
		}
		if _, err := parse.Parse(parsetest.Harmless, dialect); err != nil {
			t.Fatalf("after %s, %d bytes, a harmless query fails: %v", name, size, err)
		}
	}
}

// residentKiB is the resident memory of this process, that of the C parser included.
func residentKiB(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Logf("memory is not measured on %s", runtime.GOOS)
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib
}
