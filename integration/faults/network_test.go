package faults

import (
	"io"
	"maps"
	"net"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"noisegate.example/gateway/gatewaytest"
)

// toxics are what the network does to a connection: toxiproxy's description of each, and "" for one that is refused.
func toxics() map[string]string {
	return map[string]string{
		"down":       "",
		"half-open":  `{"type": "timeout", "attributes": {"timeout": 0}}`,
		"timeout":    `{"type": "timeout", "attributes": {"timeout": 50}}`,
		"reset":      `{"type": "reset_peer", "attributes": {"timeout": 5}}`,
		"cut":        `{"type": "limit_data", "attributes": {"bytes": 3000}}`,
		"slow":       `{"type": "latency", "attributes": {"latency": 1000, "jitter": 100}}`,
		"narrow":     `{"type": "bandwidth", "attributes": {"rate": 2}}`,
		"slow close": `{"type": "slow_close", "attributes": {"delay": 200}}`,
		"sliced":     `{"type": "slicer", "attributes": {"average_size": 3, "size_variation": 2, "delay": 100}}`,
	}
}

// TestNetworkFaults damages the connections between the gateway and each of its databases under load, in one direction and, the next time,
// in the other. While they are damaged there may be no answers; afterwards there are, without a hand on the gateway, and no goroutine
// is left behind.
//
// covers: F05
func TestNetworkFaults(t *testing.T) {
	for name, through := range map[string]func(*gatewaytest.Databases) *string{
		"ledger": func(d *gatewaytest.Databases) *string { return &d.Ledger },
		"data":   func(d *gatewaytest.Databases) *string { return &d.Reader },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			dsn := through(&s.databases)
			var wire *toxiproxy.Proxy
			*dsn, wire = network(t, *dsn)
			address := s.inProcess(t, never(), nil)
			n := &numbers{}
			base := ours()
			for round := range *rounds {
				for i, toxic := range slices.Sorted(maps.Keys(toxics())) {
					s.refill(t, address, 20)
					l := s.load(t, n, address, 4)
					time.Sleep(20 * time.Millisecond)
					heal := poison(t, wire, toxics()[toxic], []string{"upstream", "downstream"}[(round+i)%2])
					time.Sleep(100 * time.Millisecond)
					heal()
					s.heals(t, n, address)
					l.stop(t)
					s.check(t, toxic)
				}
			}
			settled(t, base, ours)
		})
	}
}

// poison damages what passes the proxy, in one direction, until heal is called.
func poison(t *testing.T, wire *toxiproxy.Proxy, description, stream string) (heal func()) {
	t.Helper()
	if description == "" {
		wire.Stop()
		return func() {
			if err := wire.Start(); err != nil {
				t.Fatal(err)
			}
		}
	}
	named := `{"name": "fault", "stream": "` + stream + `", ` + strings.TrimPrefix(description, "{")
	if _, err := wire.Toxics.AddToxicJson(strings.NewReader(named)); err != nil {
		t.Fatal(err)
	}
	return func() { wire.Toxics.ResetToxics(t.Context()) }
}

// network leads a DSN through a proxy on TCP, because toxiproxy and most real networks are TCP, and gives the new DSN.
func network(t *testing.T, dsn string) (string, *toxiproxy.Proxy) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	socket := u.Query().Get("host") + "/.s.PGSQL.5432"
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go forward(listener, socket)
	log := zerolog.Nop()
	wire := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), log), t.Name(), "127.0.0.1:0", listener.Addr().String())
	if err := wire.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wire.Stop)
	u.Host, u.RawQuery = wire.Listen, url.Values{"sslmode": {"disable"}, "connect_timeout": {"2"}}.Encode()
	return u.String(), wire
}

// forward passes connections on to a unix socket.
func forward(listener net.Listener, socket string) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer client.Close()
			server, err := net.Dial("unix", socket)
			if err != nil {
				return
			}
			defer server.Close()
			go func() {
				_, _ = io.Copy(server, client)
				_ = server.Close()
			}()
			_, _ = io.Copy(client, server)
		}()
	}
}

// settled waits for the gateway's goroutines to end: about as many must be left as there were.
func settled(t *testing.T, base int, count func() int) {
	t.Helper()
	const slack = 5 // security.md, F05
	left := 0
	for range 600 {
		if left = count(); left <= base+slack {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("%d goroutines of the gateway, and there were %d", left, base)
}

// ours counts the goroutines that run or wait for the gateway's code. Those of connections belong to pools, which have bounds.
func ours() (count int) {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(stack, "noisegate.example/gateway.") || strings.Contains(stack, "noisegate.example/budget.") {
			count++
		}
	}
	return count
}
