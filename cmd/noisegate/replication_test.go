package main

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/cmd/noisegate/internal/config"
	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
)

// TestSeveralHosts: a gateway that would follow a failover to a standby which may lack charges does not start, unless its
// operator takes that for granted or the server waits for its standby; doctor says the same.
//
// covers: F12
func TestSeveralHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	ctx := t.Context()
	programs, err := pgtest.Programs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Need(t, "sudo apt-get install -y postgresql", filepath.Join(programs.Bin, "pg_basebackup"))
	var servers [2]*pgserver.Server
	start := func(i int) {
		servers[i], err = pgserver.Start(ctx, pgserver.Options{Programs: programs, Memory: true, Follows: servers[0],
			Settings: map[string]string{"fsync": "on", "full_page_writes": "on", "wal_level": "replica", "max_wal_senders": "4",
				"hot_standby": "on"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = servers[i].Stop() })
	}
	start(0)
	d, _, err := borrowDemoDatabase(ctx, servers[0].DSN(pgserver.Superuser, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	s := siteOn(t, d)
	s.expect(t, nil, exitOK, "applied", "migrate")
	s.expect(t, nil, exitOK, "applied", "policy", "apply", s.policy)

	one := d.dsn("noisegate", demoControl).Reveal()
	hosts := func(hosts ...string) config.Environment {
		u, err := url.Parse(one)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set("port", strings.TrimSuffix(strings.Repeat(q.Get("port")+",", len(hosts)), ","))
		q.Set("host", strings.Join(hosts, ","))
		q.Set("target_session_attrs", "read-write")
		u.RawQuery = q.Encode()
		return config.Environment{"NOISEGATE_CONTROL_DSN": u.String()}
	}
	const warning, replication = "standbys of the control database follow asynchronously", "NOISEGATE_CONTROL_REPLICATION"
	serves := func(t *testing.T, env config.Environment, warned bool) {
		t.Helper()
		code, log := s.serve(t, env)()
		if code != exitOK || strings.Contains(log, warning) != warned {
			t.Errorf("exit code %d, warned %t: %s", code, warned, log)
		}
	}
	alone := socketDir(t, servers[0])
	t.Run("no standby", func(t *testing.T) {
		serves(t, hosts(alone), false)
		serves(t, hosts(alone, alone), false) // one server, twice
		s.expect(t, hosts(alone), exitOK, `control.dsn: 0 standbys, synchronous_standby_names ""`, "doctor")
	})
	start(1)
	both := []string{alone, socketDir(t, servers[1])}
	t.Run("asynchronous", func(t *testing.T) {
		serves(t, hosts(alone), true)
		s.expect(t, hosts(alone), exitOK, "1 standbys follow asynchronously", "doctor")
		s.expect(t, hosts(both...), exitUsage, "control.dsn names several hosts", "serve")
		s.expect(t, hosts(both[1], both[0]), exitUsage, "control.replication: async-accepted", "serve")
		s.expect(t, hosts(both...), exitAbove, "fail  control.dsn: it names several hosts", "doctor")
		accepted := hosts(both...)
		accepted[replication] = config.AsyncAccepted
		serves(t, accepted, false)
		s.expect(t, accepted, exitOK, "1 standbys follow asynchronously", "doctor")
		accepted[replication] = "yes"
		s.expect(t, accepted, exitUsage, "must be async-accepted", "serve")
	})
	t.Run("synchronous", func(t *testing.T) {
		synchronous := func(set string, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "SET synchronous_commit = local")
			if err == nil {
				_, err = conn.Exec(ctx, "ALTER SYSTEM "+set)
			}
			if err == nil {
				_, err = conn.Exec(ctx, "SELECT pg_reload_conf()")
			}
			return err
		}
		t.Cleanup(func() { // nobody waits for the standby any more, which ends first
			if err := d.as(ctx, d.super, "postgres", func(conn *pgx.Conn) error {
				return synchronous("RESET synchronous_standby_names", conn)
			}); err != nil {
				t.Error(err)
			}
		})
		if err := d.as(ctx, d.super, "postgres", func(conn *pgx.Conn) error {
			if err := synchronous("SET synchronous_standby_names = '*'", conn); err != nil {
				return err
			}
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
				var waits bool
				err := conn.QueryRow(ctx, "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'").Scan(&waits)
				if err != nil || waits {
					return err
				}
				if time.Now().After(deadline) {
					t.Fatal("the server does not wait for its standby")
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		serves(t, hosts(both...), false)
		s.expect(t, hosts(both...), exitOK, `control.dsn: 1 standbys, synchronous_standby_names "*"`, "doctor")
	})
}
