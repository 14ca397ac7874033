package pgserver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// machine makes directories with (empty) server programs; the version is read from the directory's name.
func machine(t *testing.T, dirs ...string) (finder, string) {
	t.Helper()
	root := t.TempDir()
	for _, dir := range dirs {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, program := range []string{"initdb", "postgres"} {
			if err := os.WriteFile(filepath.Join(root, dir, program), nil, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return finder{
		version: func(postgres string) (int, error) {
			switch filepath.Base(filepath.Dir(postgres)) {
			case "v13":
				return 13, nil
			case "v15":
				return 15, nil
			case "v17":
				return 17, nil
			case "v99":
				return 99, nil
			default:
				return 0, errors.New("not PostgreSQL")
			}
		},
		lookPath: func(string) (string, error) { return "", errors.New("not in PATH") },
		bindir:   func() (string, error) { return "", errors.New("no pg_config") },
		install:  "sudo apt-get install -y postgresql",
	}, root
}

func TestFindTakesTheNewest(t *testing.T) {
	f, root := machine(t, "path/v15", "lib/v13", "lib/v17", "other/broken")
	f.lookPath = func(program string) (string, error) { return filepath.Join(root, "path/v15", program), nil }
	f.globs = []string{filepath.Join(root, "lib/*"), filepath.Join(root, "other/*")}
	got, err := f.find()
	if err != nil || got.Version != 17 || filepath.Base(got.Bin) != "v17" {
		t.Errorf("got %+v, %v; want version 17", got, err)
	}
}

// A version that Noisegate was not tested with is not taken by itself; a version that is asked for is, and no other.
func TestFindTakesTestedVersions(t *testing.T) {
	f, root := machine(t, "lib/v13", "lib/v15", "lib/v17", "lib/v99")
	f.globs = []string{filepath.Join(root, "lib/*")}
	for wanted, want := range map[int]int{0: 17, 15: 15, 17: 17} {
		f.wanted = wanted
		if got, err := f.find(); err != nil || got.Version != want {
			t.Errorf("version %d asked for: got %+v, %v; want %d", wanted, got, err, want)
		}
	}
	f.wanted = 16
	if got, err := f.find(); err == nil {
		t.Errorf("got %+v, though version 16 is not installed", got)
	}
}

func TestWantedIn(t *testing.T) {
	env := map[string]string{VersionVariable: "17", RepositoryVariable: "https://mirror.example/maven"}
	w, err := WantedIn(func(name string) string { return env[name] })
	if err != nil || w.Version != 17 || w.Repository != "https://mirror.example/maven" {
		t.Errorf("got %+v, %v", w, err)
	}
	for _, text := range []string{"13", "19", "x", "18.1"} {
		env[VersionVariable] = text
		if w, err := WantedIn(func(name string) string { return env[name] }); err == nil || !strings.Contains(err.Error(), VersionVariable) {
			t.Errorf("%q: got %+v, %v; want an error that names the variable", text, w, err)
		}
	}
}

func TestFindFollowsLinks(t *testing.T) {
	f, root := machine(t, "lib/v15")
	if err := os.Mkdir(filepath.Join(root, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "lib/v15/initdb"), filepath.Join(root, "bin/initdb")); err != nil {
		t.Fatal(err)
	}
	f.lookPath = func(program string) (string, error) { return filepath.Join(root, "bin", program), nil }
	if got, err := f.find(); err != nil || got.Version != 15 {
		t.Errorf("got %+v, %v; want the linked version 15", got, err)
	}
}

func TestFindAsksPgConfig(t *testing.T) {
	f, root := machine(t, "v15")
	f.bindir = func() (string, error) { return filepath.Join(root, "v15"), nil }
	if got, err := f.find(); err != nil || got.Version != 15 {
		t.Errorf("got %+v, %v; want version 15", got, err)
	}
}

func TestFindExplains(t *testing.T) {
	f, root := machine(t, "v13")
	_, err := f.find()
	var notFound *NotFoundError
	if !errors.As(err, &notFound) || !strings.HasSuffix(err.Error(), "install them with: sudo apt-get install -y postgresql") {
		t.Errorf("got %v, want the install line", err)
	}
	f.globs = []string{filepath.Join(root, "v13")}
	if _, err = f.find(); err == nil || !strings.Contains(err.Error(), "version 13") {
		t.Errorf("got %v, want an error that names the version found", err)
	}
}

func TestInstallLine(t *testing.T) {
	for _, c := range []struct{ goos, release, want string }{
		{"darwin", "", "brew"},
		{"linux", "ID=debian\n", "apt-get"},
		{"linux", "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "apt-get"},
		{"linux", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "dnf"},
		{"linux", "ID=alpine\n", "apk"},
		{"linux", "ID=own\n", "postgresql.org"},
	} {
		root := fstest.MapFS{"etc/os-release": {Data: []byte(c.release)}}
		if got := installLine(c.goos, root); !strings.Contains(got, c.want) {
			t.Errorf("%s %q: got %q, want %s", c.goos, c.release, got, c.want)
		}
	}
	if got := installLine("linux", fstest.MapFS{}); !strings.Contains(got, "postgresql.org") {
		t.Errorf("got %q for an unknown system", got)
	}
}
