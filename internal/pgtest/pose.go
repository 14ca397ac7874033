package pgtest

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// Pose gives a DSN that reaches the same server as the given one (a URL) through a relay that makes it say it is of
// another major version, of as many digits. The relay ends with the test.
func Pose(t testing.TB, dsn string, major int) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	network, address := "tcp", u.Host
	if address == "" {
		network, address = "unix", filepath.Join(u.Query().Get("host"), ".s.PGSQL."+u.Query().Get("port"))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // the listener was closed
			}
			go relay(client, network, address, fmt.Sprint(major))
		}
	}()
	u.Host, u.RawQuery = listener.Addr().String(), url.Values{"sslmode": {"disable"}}.Encode()
	return u.String()
}

// relay connects a client with a server, and changes the first digits of the server's parameter server_version in its greeting.
func relay(client net.Conn, network, address, major string) {
	defer client.Close()
	server, err := net.Dial(network, address)
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	const readyForQuery = 'Z'
	for {
		header := make([]byte, 5)
		if _, err := io.ReadFull(server, header); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(header[1:])-4)
		if _, err := io.ReadFull(server, body); err != nil {
			return
		}
		if name := "server_version\x00"; header[0] == 'S' && strings.HasPrefix(string(body), name) {
			copy(body[len(name):], major)
		}
		if _, err := client.Write(append(header, body...)); err != nil {
			return
		}
		if header[0] == readyForQuery {
			break
		}
	}
	_, _ = io.Copy(client, server)
}
