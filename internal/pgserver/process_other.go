//go:build unix && !linux

package pgserver

import "syscall"

// dieWithParent does nothing where the system has no parent-death signal; the reaper does it alone there.
func dieWithParent(*syscall.SysProcAttr) {}

// MemoryDir is empty: no other system has a directory in memory that a program may rely on.
func MemoryDir() string { return "" }
