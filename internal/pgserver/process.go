package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
)

// run starts the program and watches it. The operating system sends the parent-death signal when the starting *thread*
// ends, so the thread that starts the program stays with it.
//
// All processes of the server inherit one end of a pipe: when nobody holds it any more, the last of them has ended.
func (p *process) run() error {
	watched, held, err := os.Pipe()
	if err != nil {
		return err
	}
	p.cmd.ExtraFiles = []*os.File{held}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		_ = held.Close() // this process's own copy
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended does not matter to its caller, and start-up errors are in the log
			close(p.done)
			runtime.KeepAlive(p.reaper)
		}
	}()
	go func() {
		_, _ = io.Copy(io.Discard, watched)
		_ = watched.Close()
		close(p.gone)
	}()
	return <-started
}

func (p *process) signal(signal syscall.Signal) {
	_ = p.cmd.Process.Signal(signal) // it may have ended by itself
}

// account is the unprivileged user that a server of root runs as; PostgreSQL refuses to be root. A nil account stands for
// the user of this process.
type account struct {
	uid, gid uint32
}

func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil && uid != 0 {
			return &account{uid: uint32(uid), gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("pgserver: PostgreSQL refuses to run as root, and this system has neither a user postgres nor nobody")
}

func (a *account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}

// own hands a directory to the account, closed to everyone else.
func (a *account) own(dir string) error {
	if err := os.Chmod(dir, 0o700); err != nil || a == nil {
		return err
	}
	return os.Chown(dir, int(a.uid), int(a.gid))
}

// reaches reports whether the account can enter a directory: everyone may, all the way down from the root.
func (a *account) reaches(dir string) bool {
	if a == nil {
		return true // what this process may enter, its server may
	}
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// tempDir is the system's directory for temporary files, or /tmp where that one is closed to the account.
func (a *account) tempDir() string {
	if dir := os.TempDir(); a.reaches(dir) {
		return dir
	}
	return "/tmp"
}

// reaper is a small process that outlives this one, however this one ends, to stop the server and remove its directory. It
// notices the end of this process by the end of its standard input.
type reaper struct {
	cmd   *exec.Cmd
	input io.Closer
}

// The reaper runs as the server's user, whose directory it removes and whose process it signals. SIGQUIT is PostgreSQL's
// immediate shutdown.
const reaperScript = `
read -r order
[ "$order" = dismissed ] && exit 0
if pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null); then
	kill -QUIT "$pid" 2>/dev/null
	for i in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$pid" 2>/dev/null || break; sleep 0.2; done
	kill -KILL "$pid" 2>/dev/null
fi
[ "$2" = keep ] || rm -rf "$1"
[ "$3" = "$1" ] || rm -rf "$3"
exit 0`

func startReaper(s *Server) (*reaper, error) {
	fate := "remove"
	if s.keep {
		fate = "keep"
	}
	cmd := exec.CommandContext(context.Background(), "/bin/sh", "-c", reaperScript, "sh", s.dir, fate, s.sockets)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.account.credential()}
	input, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("pgserver: cannot start the process that cleans up: %w", err)
	}
	return &reaper{cmd: cmd, input: input}, nil
}

// dismiss ends the reaper without letting it do its work.
func (r *reaper) dismiss() {
	if r == nil || r.input == nil {
		return
	}
	_, _ = io.WriteString(r.input.(io.Writer), "dismissed\n")
	_ = r.input.Close()
	_ = r.cmd.Wait()
	r.input = nil
}
