package pgserver

import (
	"os"
	"syscall"
)

// tmpfsMagic is the type of file systems in memory (statfs(2)).
const tmpfsMagic = 0x01021994

// memoryRoom is what must be free in memory for a server's directory to be put there: more than ten such servers use.
// Containers often have 64 MiB.
const memoryRoom = 2 << 30

// dieWithParent has the system stop the server (SIGQUIT: immediate shutdown) the moment its parent ends.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }

// MemoryDir is a directory in memory that every user may write to; "" where there is none, or too little room.
func MemoryDir() string {
	const dir = "/dev/shm"
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil || fs.Type != tmpfsMagic || fs.Bavail*uint64(fs.Bsize) < memoryRoom {
		return ""
	}
	if info, err := os.Stat(dir); err != nil || info.Mode()&os.ModeSticky == 0 || info.Mode().Perm()&0o007 != 0o007 {
		return ""
	}
	return dir
}
