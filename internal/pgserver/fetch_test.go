package pgserver

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"noisegate.example/internal/pgversion"
)

// mavenRepository serves one packed release (testdata/programs.txz: shell scripts that play PostgreSQL 17.99) whatever
// is asked for, and counts downloads.
type mavenRepository struct {
	*httptest.Server
	downloads atomic.Int64
	jar       []byte
	checksum  string // of the repository itself; empty: it has none
	hold      chan struct{}
}

func newRepository(t *testing.T) (*mavenRepository, archive) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir()) // the library leaves an empty log there
	packed, err := os.ReadFile("testdata/programs.txz")
	if err != nil {
		t.Fatal(err)
	}
	var jar bytes.Buffer
	z := zip.NewWriter(&jar)
	w, err := z.Create("postgres-programs.txz")
	if err == nil {
		_, err = w.Write(packed)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	r := &mavenRepository{jar: jar.Bytes()}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch {
		case !strings.HasPrefix(q.URL.Path, "/maven/io/zonky/test/postgres/embedded-postgres-binaries-") ||
			!strings.Contains(q.URL.Path, "/17.99.0/"):
			http.NotFound(w, q)
		case strings.HasSuffix(q.URL.Path, ".jar"):
			r.downloads.Add(1)
			if r.hold != nil {
				<-r.hold
			}
			_, _ = w.Write(r.jar)
		case r.checksum != "":
			_, _ = w.Write([]byte(r.checksum))
		default:
			http.NotFound(w, q)
		}
	}))
	t.Cleanup(r.Close)
	sum := sha256.Sum256(packed)
	return r, archive{major: 17, release: "17.99.0", sums: []string{hex.EncodeToString(sum[:])}}
}

func (r *mavenRepository) fetcher(t *testing.T, a archive) fetcher {
	t.Helper()
	return fetcher{archive: a, cache: t.TempDir(), repository: r.URL + "/maven/"}
}

func left(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".lock") {
			names = append(names, e.Name())
		}
	}
	return names
}

// Processes that want the same release at a time download it once; afterwards nothing is downloaded. Everybody may read what was fetched.
func TestFetchOnce(t *testing.T) {
	repository, release := newRepository(t)
	f := repository.fetcher(t, release)
	var told atomic.Int64
	f.told = func(version string) {
		if told.Add(1); version != "17.99.0" {
			t.Errorf("told of version %q", version)
		}
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			got, err := f.programs(t.Context())
			if err != nil || got.Version != 17 || !strings.HasPrefix(got.Bin, f.cache) {
				t.Errorf("got %+v, %v", got, err)
				return
			}
			if version, err := serverVersion(filepath.Join(got.Bin, "postgres")); err != nil || version != 17 {
				t.Errorf("the fetched program says version %d, %v", version, err)
			}
			info, err := os.Stat(filepath.Join(got.Bin, "../share/file"))
			if err != nil || info.Mode().Perm() != 0o644 {
				t.Errorf("others cannot read what was fetched: %v, %v", info, err)
			}
		})
	}
	all.Wait()
	if repository.downloads.Load() != 1 || told.Load() != 1 || len(left(t, f.cache)) != 1 {
		t.Errorf("%d downloads, told %d times, left: %v", repository.downloads.Load(), told.Load(), left(t, f.cache))
	}
}

// What is not exactly what this program knows is not kept, and was not run: the repository may be anybody's.
func TestFetchRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*mavenRepository, *archive)
		why    string
	}{
		"replaced":      {func(_ *mavenRepository, a *archive) { a.sums = []string{strings.Repeat("0", 64)} }, "checksum"},
		"damaged":       {func(r *mavenRepository, _ *archive) { r.checksum = strings.Repeat("0", 64) }, "checksums do not match"},
		"cut off":       {func(r *mavenRepository, _ *archive) { r.jar = r.jar[:len(r.jar)/2] }, "error fetching"},
		"not there":     {func(_ *mavenRepository, a *archive) { a.release = "17.98.0" }, "no version found"},
		"other version": {func(_ *mavenRepository, a *archive) { a.major = 16 }, "version 17"},
		"nobody home":   {func(r *mavenRepository, _ *archive) { r.Close() }, "unable to connect"},
	} {
		t.Run(name, func(t *testing.T) {
			repository, release := newRepository(t)
			c.change(repository, &release)
			f := repository.fetcher(t, release)
			got, err := f.programs(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.why) || got.Bin != "" {
				t.Errorf("got %+v, %v; want an error with %q", got, err, c.why)
			}
			if names := left(t, f.cache); len(names) > 0 {
				t.Errorf("left behind: %v", names)
			}
		})
	}
}

// A download that does not end, and one that another process does not end, wait no longer than the caller does.
func TestFetchGivesUp(t *testing.T) {
	repository, release := newRepository(t)
	repository.hold = make(chan struct{})
	f := repository.fetcher(t, release)
	for _, want := range []string{"cannot fetch", "another process"} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if want == "another process" {
			unlock, err := lock(t.Context(), filepath.Join(f.cache, fmt.Sprintf("postgresql-17.99.0-%s-%s.lock", runtime.GOOS, runtime.GOARCH)))
			if err != nil {
				t.Fatal(err)
			}
			defer unlock()
		}
		if _, err := f.programs(ctx); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		cancel()
	}
	// The download that nobody waits for takes nothing with it, and cleans up.
	close(repository.hold)
	for deadline := time.Now().Add(10 * time.Second); len(left(t, f.cache)) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("10 s after the download ended there is still something of it: %v", left(t, f.cache))
		}
	}
}

// Every tested version can be fetched on the systems that people develop on, and each archive has its checksum.
func TestArchives(t *testing.T) {
	var tested []int
	for v := pgversion.Oldest; v <= pgversion.Newest; v++ {
		tested = append(tested, v)
	}
	for _, system := range []string{"linux/amd64", "linux/arm64", "darwin/arm64", "darwin/amd64"} {
		var majors []int
		for _, a := range archives(system) {
			majors = append(majors, a.major)
			if major, err := pgversion.Major(a.release); err != nil || major != a.major || len(a.sums) == 0 {
				t.Errorf("%s: %+v", system, a)
			}
			for _, sum := range a.sums {
				if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size {
					t.Errorf("%s %s: %q is no SHA-256", system, a.release, sum)
				}
			}
		}
		if !slices.Equal(majors, tested) {
			t.Errorf("%s: versions %v, want %v", system, majors, tested)
		}
	}
	if _, err := fetch(t.Context(), Wanted{Version: 13}); err == nil || !strings.Contains(err.Error(), "no PostgreSQL 13 to fetch") {
		t.Errorf("got %v", err)
	}
}
