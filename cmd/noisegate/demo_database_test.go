package main

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate/cmd/noisegate/demodata"
)

// The demo's ground, without a gateway: roles that can do what they need and no more, and the data.
func TestDemoDatabase(t *testing.T) {
	ctx := t.Context()
	begin := time.Now()
	d, _, err := startDemoDatabase(ctx, "")
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
