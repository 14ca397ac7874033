package pgserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"noisegate.example/internal/pgversion"
)

// Programs is where the server programs of one PostgreSQL version are.
type Programs struct {
	Bin     string // the directory that holds initdb and postgres
	Version int    // the major version
}

// NotFoundError says that this machine has no usable PostgreSQL, and how to get it.
type NotFoundError struct {
	Install string // the one line that installs it on this system
	Seen    []string
	Fetch   error // why none was fetched
}

func (e *NotFoundError) Error() string {
	msg := "no PostgreSQL server programs were found (initdb, postgres)"
	if len(e.Seen) > 0 {
		msg = fmt.Sprintf("no PostgreSQL of version %d to %d was found (looked at %s)", pgversion.Oldest, pgversion.Newest,
			strings.Join(e.Seen, ", "))
	}
	if e.Fetch != nil {
		msg += fmt.Sprintf(", and none could be fetched (%v)", e.Fetch)
	}
	return msg + "; install them with: " + e.Install
}

func (e *NotFoundError) Unwrap() error { return e.Fetch }

// Wanted says which programs [Find] looks for.
type Wanted struct {
	// Version is a major version; 0 for the newest installed one that Noisegate was tested with.
	Version int
	// Repository is where programs are fetched from: the URL of a Maven repository or of a mirror of one. Empty for the public one.
	Repository string
	// Cache is the directory that keeps what was fetched. Empty for noisegate in the user's cache directory; for root, whose directories the
	// server's user cannot enter, /var/cache/noisegate.
	Cache string
	// Fetching, unless it is nil, is called before a download begins.
	Fetching func(version string)
}

// Environment variables that say what is wanted; see [WantedIn].
const (
	VersionVariable    = "NOISEGATE_POSTGRES_VERSION"
	RepositoryVariable = "EMBEDDED_POSTGRES_REPOSITORY"
)

// WantedIn is what an environment asks for: a major version, a repository to fetch programs from.
func WantedIn(lookUp func(variable string) string) (Wanted, error) {
	w := Wanted{Repository: lookUp(RepositoryVariable)}
	if text := lookUp(VersionVariable); text != "" {
		version, err := strconv.Atoi(text)
		if err != nil || version < pgversion.Oldest || version > pgversion.Newest {
			return Wanted{}, fmt.Errorf("%s: must be a major version of PostgreSQL from %d to %d", VersionVariable, pgversion.Oldest,
				pgversion.Newest)
		}
		w.Version = version
	}
	return w, nil
}

// Find looks for initdb and postgres: in PATH, where pg_config says, and where packages of Linux and macOS put them.
// The newest version that Noisegate was tested with wins. Where there is none of the wanted version, the programs are
// fetched once, and kept. The error is a [*NotFoundError].
func Find(ctx context.Context, w Wanted) (Programs, error) {
	installed, err := finder{
		wanted:   w.Version,
		lookPath: exec.LookPath,
		globs:    packageDirs(),
		version:  serverVersion,
		bindir:   pgConfigBindir,
		install:  installLine(runtime.GOOS, os.DirFS("/")),
	}.find()
	var notFound *NotFoundError
	if !errors.As(err, &notFound) {
		return installed, err
	}
	fetched, err := fetch(ctx, w)
	if err != nil {
		notFound.Fetch = err
		return Programs{}, notFound
	}
	return fetched, nil
}

// packageDirs are the directories of packages that keep server programs out of PATH.
func packageDirs() []string {
	return []string{
		"/usr/lib/postgresql/*/bin",       // Debian, Ubuntu
		"/usr/pgsql-*/bin",                // PGDG packages for Fedora and Red Hat
		"/usr/libexec/postgresql*",        // Alpine
		"/usr/lib/postgresql*/bin",        // SUSE
		"/opt/homebrew/opt/postgres*/bin", // macOS, Apple silicon
		"/usr/local/opt/postgres*/bin",    // macOS, Intel
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	}
}

// finder finds what is installed; its view of the machine are fields.
type finder struct {
	wanted   int // major version; 0: any that was tested
	lookPath func(program string) (string, error)
	globs    []string
	version  func(postgres string) (int, error)
	bindir   func() (string, error)
	install  string
}

func (f finder) find() (Programs, error) {
	var best Programs
	var seen []string
	for _, dir := range f.candidates() {
		version, err := f.version(filepath.Join(dir, "postgres"))
		if err != nil {
			continue
		}
		seen = append(seen, fmt.Sprintf("%s: version %d", dir, version))
		if f.accepts(version) && version > best.Version {
			best = Programs{Bin: dir, Version: version}
		}
	}
	if best.Bin == "" {
		return Programs{}, &NotFoundError{Install: f.install, Seen: seen}
	}
	return best, nil
}

func (f finder) accepts(version int) bool {
	if f.wanted != 0 {
		return version == f.wanted
	}
	return version >= pgversion.Oldest && version <= pgversion.Newest
}

// candidates are the directories that hold both programs. Links are followed: PostgreSQL finds its own files relative to
// the real program.
func (f finder) candidates() []string {
	var dirs []string
	if initdb, err := f.lookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(initdb))
	}
	if dir, err := f.bindir(); err == nil {
		dirs = append(dirs, dir)
	}
	for _, glob := range f.globs {
		matches, _ := filepath.Glob(glob) // the patterns are constants
		dirs = append(dirs, matches...)
	}
	var found []string
	for _, dir := range dirs {
		initdb, err := filepath.EvalSymlinks(filepath.Join(dir, "initdb"))
		if err != nil {
			continue
		}
		bin := filepath.Dir(initdb)
		if _, err := os.Stat(filepath.Join(bin, "postgres")); err == nil && !slices.Contains(found, bin) {
			found = append(found, bin)
		}
	}
	return found
}

// serverVersion asks a postgres program which major version it is: "postgres (PostgreSQL) 15.18 (Debian ...)".
func serverVersion(postgres string) (int, error) {
	out, err := ask(postgres, "--version")
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(out, "(PostgreSQL) ")
	if !ok {
		return 0, errors.New("pgserver: not a PostgreSQL server program")
	}
	return pgversion.Major(rest)
}

func pgConfigBindir() (string, error) { return ask("pg_config", "--bindir") }

// ask runs a program that answers at once, and gives its answer.
func ask(program, question string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, question).Output()
	return strings.TrimSpace(string(out)), err
}

// installLine is what a user types to get PostgreSQL on this system.
func installLine(goos string, root fs.FS) string {
	if goos == "darwin" {
		return "brew install postgresql@17"
	}
	release, err := fs.ReadFile(root, "etc/os-release")
	if err != nil {
		return "see https://www.postgresql.org/download/"
	}
	lines := map[string]string{
		"debian": "sudo apt-get install -y postgresql",
		"ubuntu": "sudo apt-get install -y postgresql",
		"fedora": "sudo dnf install -y postgresql-server",
		"rhel":   "sudo dnf install -y postgresql-server",
		"centos": "sudo dnf install -y postgresql-server",
		"suse":   "sudo zypper install -y postgresql-server",
		"alpine": "sudo apk add postgresql",
		"arch":   "sudo pacman -S --noconfirm postgresql",
	}
	for _, id := range systemIDs(release) {
		if line, ok := lines[id]; ok {
			return line
		}
	}
	return "see https://www.postgresql.org/download/"
}

// systemIDs are the words of ID and ID_LIKE in an os-release file, the system's own name first.
func systemIDs(release []byte) []string {
	values := map[string]string{}
	for s := bufio.NewScanner(bytes.NewReader(release)); s.Scan(); {
		if name, value, ok := strings.Cut(s.Text(), "="); ok {
			values[name] = strings.Trim(value, `"'`)
		}
	}
	return strings.Fields(values["ID"] + " " + values["ID_LIKE"])
}
