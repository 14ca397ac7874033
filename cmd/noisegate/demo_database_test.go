package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/cmd/noisegate/demodata"
	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
)

// The demo's ground, without a gateway: roles that can do what they need and no more, and the data.
func TestDemoDatabase(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	ctx := t.Context()
	begin := time.Now()
	d, _, err := startDemoDatabase(ctx, askedServer(t), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	t.Log("server", time.Since(begin))
	if err := d.prepare(ctx); err != nil {
		t.Fatal(err)
	}
	t.Log("roles", time.Since(begin))
	if err := d.load(ctx, demodata.DefaultRows); err != nil {
		t.Fatal(err)
	}
	t.Log("data", time.Since(begin))
	if _, err := migrate(ctx, d.dsn("noisegate_owner", demoControl)); err != nil {
		t.Fatal(err)
	}
	t.Log("migrations", time.Since(begin))
	var people, visits int
	if err := d.as(ctx, "noisegate_reader", demoProtected, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT (SELECT count(*) FROM public.people), (SELECT count(*) FROM public.visits)").Scan(&people, &visits)
	}); err != nil {
		t.Fatal(err)
	}
	if people != demodata.DefaultRows || visits < 3*people {
		t.Errorf("%d people and %d visits", people, visits)
	}
	if err := d.as(ctx, "noisegate_reader", demoProtected, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "DELETE FROM public.people")
		return err
	}); err == nil {
		t.Error("the reader deleted people")
	}
}

// A server of the user's is left as it was found; one that has Noisegate's roles already is not touched at all.
func TestDemoBorrowsAServer(t *testing.T) {
	ctx := t.Context()
	superuser := pgtest.Server(t).DSN(pgserver.Superuser, "postgres")
	d, _, err := borrowDemoDatabase(ctx, superuser)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.prepare(ctx); err != nil {
		t.Fatal(err)
	}
	if err := d.load(ctx, demodata.MinRows); err != nil {
		t.Fatal(err)
	}
	if _, _, err := borrowDemoDatabase(ctx, superuser); !errors.As(err, new(usageError)) {
		t.Errorf("a second demo took the roles of the first: %v", err)
	}
	if _, _, err := borrowDemoDatabase(ctx, "host=/tmp"); !errors.As(err, new(usageError)) {
		t.Errorf("a DSN that is no URL: %v", err)
	}
	if err := d.close(ctx); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := d.as(ctx, d.super, "postgres", func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT (SELECT count(*) FROM pg_roles WHERE rolname LIKE 'noisegate%')
			+ (SELECT count(*) FROM pg_database WHERE datname LIKE 'noisegate%')`).Scan(&left)
	}); err != nil || left != 0 {
		t.Errorf("%d roles and databases are left, %v", left, err)
	}
}
