package pgexec_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite"
)

// smallDisk has tables that are made from now on lie on a file system of 2 MiB, until it grows. Where none can be mounted, what does not
// fit into memory may not be written instead.
func smallDisk(t *testing.T, p *pgtest.ProtectedDatabase) (grow, leave func()) {
	t.Helper()
	var data, database string
	if err := p.Conn(t, p.DSN).QueryRow(t.Context(), "SELECT current_setting('data_directory'), current_database()").
		Scan(&data, &database); err != nil {
		t.Fatal(err)
	}
	disk, err := os.MkdirTemp("", "noisegate-disk-") // which other users may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(disk) })
	owner, err := os.Stat(data)
	mount := []byte("the server is on another machine")
	if err == nil {
		mount, err = exec.Command("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk).CombinedOutput()
	}
	reset := fmt.Sprintf("ALTER DATABASE %s RESET ALL", database)
	if err != nil {
		t.Logf("no disk, but temp_file_limit: %s", mount)
		p.Exec(t, fmt.Sprintf("ALTER DATABASE %s SET temp_file_limit = 0", database),
			fmt.Sprintf("ALTER DATABASE %s SET work_mem = 64", database))
		return func() { p.Exec(t, reset) }, func() {}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", disk).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	server := owner.Sys().(*syscall.Stat_t)
	space := filepath.Join(disk, "space")
	if err := os.Mkdir(space, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{disk, space} {
		if err := os.Chown(path, int(server.Uid), int(server.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	p.Exec(t, fmt.Sprintf("CREATE TABLESPACE %s_small LOCATION '%s'", database, space),
		fmt.Sprintf("GRANT CREATE ON TABLESPACE %s_small TO noisegate_prepare", database),
		fmt.Sprintf("ALTER DATABASE %[1]s SET default_tablespace = %[1]s_small", database))
	grow = func() {
		if out, err := exec.Command("mount", "-o", "remount,size=64m", disk).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return grow, func() {
		p.Exec(t, "DROP SCHEMA noisegate_prepared CASCADE", reset, fmt.Sprintf("DROP TABLESPACE %s_small", database))
	}
}

// Where the disk is full the version before serves, and the error says so; once there is space the next run succeeds.
func TestPrepareOnAFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this fills a disk")
	}
	p := pgtest.Protected(t, preparedDDL)
	d := open(t, p, nil)
	fillVisits(t, p, rand.New(rand.NewPCG(16, 30)))
	on := provenSnapshot(t, d, preparedPolicy)
	table, _ := on.Table("", "visits")
	prepared(t, p, d, on, 1)
	p.Exec(t, "INSERT INTO visits (id, person, minutes) SELECT g, g, 1 FROM generate_series(100000, 160000) g")
	grow, leave := smallDisk(t, p)
	for range 2 {
		_, err := prepareConfig(p, 2).Prepare(t.Context(), on, table, false, nil)
		if err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Fatalf("got %v", err)
		}
		versions, err := d.Versions(t.Context(), "d")
		if err != nil || len(versions) != 1 || versions[0].Number != 1 {
			t.Fatalf("%+v, %v: the version before does not serve", versions, err)
		}
		plan := planned(t, sqlrewrite.Serving(on, versions[0]), "SELECT count(*) FROM visits", 0)
		if _, err := collect(t, d, statementsOf(t, plan)[0]); err != nil {
			t.Error(err)
		}
	}
	grow()
	prepared(t, p, d, on, 3)
	leave()
}
