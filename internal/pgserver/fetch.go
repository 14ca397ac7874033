package pgserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	embedded "github.com/fergusstrange/embedded-postgres"

	"noisegate.example/internal/pgversion"
)

// archive is one release of PostgreSQL as io.zonky.test.postgres packs it: initdb, pg_ctl and postgres with their
// libraries. It has no psql.
type archive struct {
	major   int
	release string // the artifact's version
	// SHA-256 of the packed programs, in hexadecimal: one for each of the system's C libraries. The repository's own
	// checksum only finds accidents: an attacker who replaces an artifact replaces its checksum as well.
	sums []string
}

// archives are what may be fetched on a system; none where nothing was packed for it.
func archives(system string) []archive {
	switch system {
	case "linux/amd64": // glibc, musl
		return []archive{
			{14, "14.20.0", []string{"b06d5edc9f980b3d32e1a2ac486eef62e71b0d49b03f3043317e35f9e30fde9a",
				"fd4e3aee1028b11b0d61b43128cf78d8be36b2be8484e8e4d17d32713f601a5d"}},
			{15, "15.19.0", []string{"335beb3873692297bfa7712f09ef706114c28896e85ee83098f3aafaaa70b24a",
				"c75b9dd6d91d76d98b90b97cc4389c1a1339c40eeffa69e2b1dbedf58379f649"}},
			{16, "16.15.0", []string{"bda67fe32e23b049c25db4b98132d154a4fa824c44e1bd8fd01b0236f4676c24",
				"265024127dfd63ca3c2cca9ef85543fd6ad9e0cfd5236eb983e6b993ee6cc083"}},
			{17, "17.11.0", []string{"f044ba1009e9c7ed62a5a9a6f923ca6327fe4e80d8f6bf4f8887dbc59ac14bed",
				"d4c71a0ed4756905b071aefc0bd0d0458a53a25edc643d473917cff1f49d1aa3"}},
			{18, "18.6.0", []string{"63999c2914366d62c68e51794e597588c336e75ed2958d53c558e8deca5e13fc",
				"d9bba3fa653ad08f5e92303587451ed6d1ca4883afb377773630ae853d40121f"}},
		}
	case "linux/arm64":
		return []archive{
			{14, "14.15.0", []string{"fb73629e1a225d0bd36f097c9f1071f6fe5ecd8c18df0e326cb0ad9e99b16972"}},
			{15, "15.19.0", []string{"1459772dc64a36546dcd5a5b2a1e771fc79e7346ed0575afdef39fcea346aeb9"}},
			{16, "16.15.0", []string{"e66afbea65a143aa6cda8d5a56c2aea9985d1d9649dfb29ba487363844fd1f81"}},
			{17, "17.11.0", []string{"3f389cec72930e0f0d6e917709593bbabcb417023c12d1f1eb7acc9ae7ab436c"}},
			{18, "18.6.0", []string{"2eb24d67326da41a81064d116b0bce412dff543c835d6fcc1c099e4abcf18836"}},
		}
	case "darwin/arm64":
		return []archive{
			{14, "14.15.0", []string{"ef246e6bb393bc604aa7f20387d84ee52ab2f95810ef0d849b1c4a68263bfeee"}},
			{15, "15.19.0", []string{"af7030facc4f147ffa44af198fa64e84d61a7db20e2fa7a78af19f69059fea3e"}},
			{16, "16.15.0", []string{"07f29aed5baae53962b0ab80c901763b490b5692cf6a730cb3ece6bf455567af"}},
			{17, "17.11.0", []string{"9debf1c40ca2cd7e71d101be421f8b170722222633960267fbfef7ce77b8b530"}},
			{18, "18.6.0", []string{"f4db5df0b13e3e72149c0547ccd1eee177cfe67accb8c296e8d0e46ef3601f01"}},
		}
	case "darwin/amd64":
		return []archive{
			{14, "14.20.0", []string{"a6bf76f42378b4556af3cf6a4fde9420a0d16dd2afb9f95c4ffb00600348f915"}},
			{15, "15.19.0", []string{"af7030facc4f147ffa44af198fa64e84d61a7db20e2fa7a78af19f69059fea3e"}},
			{16, "16.15.0", []string{"07f29aed5baae53962b0ab80c901763b490b5692cf6a730cb3ece6bf455567af"}},
			{17, "17.11.0", []string{"9debf1c40ca2cd7e71d101be421f8b170722222633960267fbfef7ce77b8b530"}},
			{18, "18.6.0", []string{"f4db5df0b13e3e72149c0547ccd1eee177cfe67accb8c296e8d0e46ef3601f01"}},
		}
	default:
		return nil
	}
}

// fetch gives the programs of the wanted version (the newest tested one when none is wanted) from the cache, and
// downloads them before if they are not there yet. Processes that want the same at a time download it once.
func fetch(ctx context.Context, w Wanted) (Programs, error) {
	major := w.Version
	if major == 0 {
		major = pgversion.Newest
	}
	system := runtime.GOOS + "/" + runtime.GOARCH
	all := archives(system)
	at := slices.IndexFunc(all, func(a archive) bool { return a.major == major })
	if at < 0 {
		return Programs{}, fmt.Errorf("pgserver: there is no PostgreSQL %d to fetch for %s", major, system)
	}
	cache, err := CacheDir(w.Cache)
	if err != nil {
		return Programs{}, err
	}
	f := fetcher{archive: all[at], cache: cache, repository: w.Repository, told: w.Fetching}
	return f.programs(ctx)
}

// CacheDir is the directory of fetched programs (see [Wanted.Cache]), which exists afterwards and which the server's user can enter.
func CacheDir(given string) (string, error) {
	dir := given
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("pgserver: no directory for fetched programs (set XDG_CACHE_HOME): %w", err)
		}
		if dir = filepath.Join(user, "noisegate"); os.Geteuid() == 0 {
			dir = "/var/cache/noisegate"
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("pgserver: no directory for fetched programs (set XDG_CACHE_HOME): %w", err)
	}
	acc, err := serverAccount()
	if err == nil && !acc.reaches(dir) {
		err = fmt.Errorf("pgserver: PostgreSQL refuses to run as root, and the user it runs as instead cannot reach %s", dir)
	}
	return dir, err
}

// fetcher fetches one archive.
type fetcher struct {
	archive    archive
	cache      string
	repository string
	told       func(version string)
}

func (f fetcher) programs(ctx context.Context) (Programs, error) {
	dir := filepath.Join(f.cache, fmt.Sprintf("postgresql-%s-%s-%s", f.archive.release, runtime.GOOS, runtime.GOARCH))
	found := Programs{Bin: filepath.Join(dir, "bin"), Version: f.archive.major}
	if complete(dir) {
		return found, nil
	}
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return Programs{}, err
	}
	defer unlock()
	if complete(dir) { // another process was faster
		return found, nil
	}
	if f.told != nil {
		f.told(f.archive.release)
	}
	if err := f.download(ctx, dir); err != nil {
		return Programs{}, fmt.Errorf("pgserver: cannot fetch PostgreSQL %s: %w", f.archive.release, err)
	}
	return found, nil
}

func complete(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "bin", "postgres"))
	return err == nil
}

// download fetches the archive and unpacks it into dir, which exists afterwards when all went well. Nothing of it runs
// before its checksum is right.
func (f fetcher) download(ctx context.Context, dir string) error {
	scratch, err := os.MkdirTemp(f.cache, "fetching-")
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- f.unpack(scratch) }()
	select {
	case err = <-ended:
		defer os.RemoveAll(scratch)
	case <-ctx.Done(): // the library's download cannot be cancelled, and it panics when its directory goes
		go func() {
			<-ended
			_ = os.RemoveAll(scratch)
		}()
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	if err := f.check(filepath.Join(scratch, "archive")); err != nil {
		return err
	}
	programs := filepath.Join(scratch, "programs")
	if err := openToEveryone(programs); err != nil {
		return err
	}
	version, err := serverVersion(filepath.Join(programs, "bin", "postgres")) //nolint:contextcheck // it has a separate limit
	if err != nil {
		return fmt.Errorf("the fetched program does not run here: %w", err)
	}
	if version != f.archive.major {
		return fmt.Errorf("the fetched program is of version %d", version)
	}
	return os.Rename(programs, dir) // it gets its name when it is complete
}

// unpack fetches the archive into scratch/archive, and its files into scratch/programs.
//
// The library fetches programs only as the first step of a start, which runs them at once, listens on TCP and refuses to be root. So that
// start is made to end right after the programs are unpacked: the directory that it makes next lies below one of them, where none can be
// made.
func (f fetcher) unpack(scratch string) error {
	dir := filepath.Join(scratch, "programs")
	config := embedded.DefaultConfig().Version(embedded.PostgresVersion(f.archive.release)).Port(0).Logger(io.Discard).
		CachePath(filepath.Join(scratch, "archive")).BinariesPath(dir).RuntimePath(filepath.Join(dir, "bin", "postgres", "none"))
	if f.repository != "" {
		config = config.BinaryRepositoryURL(strings.TrimSuffix(f.repository, "/"))
	}
	err := embedded.NewDatabase(config).Start()
	if err == nil || !strings.HasPrefix(err.Error(), "unable to create runtime directory") {
		return fmt.Errorf("the library did not fetch it: %w", err)
	}
	return nil
}

// check holds what was fetched against the checksums that this program knows.
func (f fetcher) check(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.txz"))
	if err != nil || len(files) != 1 {
		return errors.New("the repository's artifact holds no programs")
	}
	packed, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	sum := sha256.Sum256(packed)
	if !slices.Contains(f.archive.sums, hex.EncodeToString(sum[:])) {
		return errors.New("its checksum is not the one that this version of Noisegate knows: the repository's artifact was replaced, or " +
			"is for another C library")
	}
	return nil
}

// openToEveryone lets the server's user read what root's umask may have closed.
func openToEveryone(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o444
		if entry.IsDir() || mode&0o100 != 0 {
			mode |= 0o111
		}
		return os.Chmod(path, mode)
	})
}

// lock waits until no other process has the file locked, and takes the lock; it goes with the process at the latest.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("pgserver: no directory for fetched programs: %w", err)
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = file.Close()
			return nil, fmt.Errorf("pgserver: cannot lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			_ = file.Close()
			return nil, fmt.Errorf("pgserver: waited for another process that fetches PostgreSQL: %w", ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
