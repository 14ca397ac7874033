package pgserver

import "syscall"

// dieWithParent has the system stop the server (SIGQUIT: immediate shutdown) the moment its parent ends.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }
