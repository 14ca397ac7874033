package main

import "syscall"

// clientDescriptors is how many connections clients may have: half of the files that this process may have open. The
// other half is for databases, and for the anchor.
func clientDescriptors() int {
	const unlimited = 1 << 20
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return unlimited
	}
	return int(min(limit.Cur/2, unlimited))
}
