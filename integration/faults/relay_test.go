package faults

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
)

// relay stands between a gateway and its ledger's server and visits [afterCommit] when the server says, while a charge is being
// reserved, that a transaction is committed, before it passes that on. It gives the DSN that leads through it.
func (t *trap) relay(dsn string) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", err
	}
	const socket = "/.s.PGSQL.5432"
	query := u.Query()
	server := query.Get("host") + socket
	dir, err := os.MkdirTemp("/tmp", "relay-")
	if err != nil {
		return "", err
	}
	listener, err := net.Listen("unix", filepath.Join(dir, socket))
	if err != nil {
		return "", err
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go t.pass(client, server)
		}
	}()
	query.Set("host", dir)
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// pass copies what client and server say until one of them hangs up.
func (t *trap) pass(client net.Conn, server string) {
	defer client.Close()
	upstream, err := net.Dial("unix", server)
	if err != nil {
		return
	}
	defer upstream.Close()
	go func() { _, _ = io.Copy(upstream, client) }()
	buffer := make([]byte, 1<<16)
	for {
		n, err := upstream.Read(buffer)
		if err != nil {
			return
		}
		if t.reserving.Load() > 0 && bytes.Contains(buffer[:n], []byte("C\x00\x00\x00\x0bCOMMIT\x00")) { // CommandComplete
			t.visit(afterCommit)
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}
