package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/cmd/noisegate/internal/config"
	"noisegate.example/cmd/noisegate/internal/doctor"
)

// TestDoctor spoils an installation in many ways, and wants the one finding that says so, with what to do. What is well
// gives no failure.
func TestDoctor(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	s := newSite(t)
	look := func(t *testing.T, env config.Environment) (code int, all []doctor.Finding) {
		t.Helper()
		code, out, errs := s.run(t, env, "doctor", "--json")
		if err := json.Unmarshal([]byte(out), &all); err != nil {
			t.Fatalf("%v\n%s%s", err, out, errs)
		}
		return code, all
	}
	// expect wants a finding of a level whose text and fix hold these words, and the exit code of the level.
	expect := func(t *testing.T, env config.Environment, level doctor.Level, text, fix string) {
		t.Helper()
		code, all := look(t, env)
		found := false
		for _, f := range all {
			found = found || f.Level == level && strings.Contains(f.Text, text) && strings.Contains(f.Fix, fix)
			if (f.Level == doctor.OK) != (f.Fix == "") {
				t.Errorf("%+v: what is well needs no fix, and all else one", f)
			}
		}
		if !found || (code == exitAbove) != (level == doctor.Fail) {
			t.Errorf("exit %d; no finding %s %q, fix %q", code, level, text, fix)
			for _, f := range all {
				if f.Level != doctor.OK {
					t.Logf("%+v", f)
				}
			}
		}
	}
	expect(t, nil, doctor.Fail, "none at all", "noisegate migrate")
	for _, args := range [][]string{{"migrate"}, {"policy", "apply", s.policy}} {
		if args[0] == "policy" {
			expect(t, nil, doctor.Fail, "no policy", "policy apply")
		}
		if code, out, errs := s.run(t, nil, args...); code != exitOK {
			t.Fatalf("%v: %d %s%s", args, code, out, errs)
		}
	}
	secret := config.Environment{"NOISEGATE_DATASETS_CENSUS_DSN": "postgres://noisegate_reader:s3cret@127.0.0.1:1/census"}
	expect(t, secret, doctor.Fail, "failed to connect", "pg_hba.conf")
	if _, out, errs := s.run(t, secret, "doctor"); strings.Contains(out+errs, "s3cret") {
		t.Error("a password is printed")
	}
	code, all := look(t, nil)
	for _, f := range all {
		if f.Level == doctor.Fail {
			t.Errorf("an installation that serves: %+v", f)
		}
	}
	if code != exitOK || len(all) < 15 {
		t.Errorf("exit %d, %d findings", code, len(all))
	}
	if code, out, _ := s.run(t, nil, "doctor"); code != exitOK || !strings.Contains(out, "ok    control.dsn: PostgreSQL ") {
		t.Errorf("exit %d:\n%s", code, out)
	}

	key := s.write(t, "open.key", strings.Repeat("0123456789abcdef", 3))
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	ended, _ := selfSigned(t, s, -time.Hour)
	ending, _ := selfSigned(t, s, time.Hour)
	if err := s.database.as(t.Context(), s.database.super, demoControl, func(conn *pgx.Conn) error {
		_, err := conn.Exec(t.Context(), "CREATE DATABASE doctor_twins")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	twinOf := func(role string) string { return s.database.dsn(role, "doctor_twins").Reveal() }
	for i, c := range []struct {
		name, spoil, undo string // SQL in the protected database; "control: " before it: in the control database
		env               config.Environment
		level             doctor.Level
		text, fix         string
	}{
		{"secret is readable", "", "", config.Environment{"NOISEGATE_AUTH_KEYS_HS256_FILE": key}, doctor.Fail, "mode 644", "chmod 600"},
		{"certificate ended", "", "", config.Environment{"NOISEGATE_HTTP_TLS_CERT_FILE": ended, "NOISEGATE_HTTP_TLS_KEY_FILE": ended},
			doctor.Fail, "the certificate ended", "renew"},
		{"certificate ends", "", "", config.Environment{"NOISEGATE_HTTP_TLS_CERT_FILE": ending, "NOISEGATE_HTTP_TLS_KEY_FILE": ending},
			doctor.Warn, "the certificate ends", "renew"},
		{"anchor is damaged", "", "", config.Environment{"NOISEGATE_CONTROL_ANCHOR": s.write(t, "anchor", "{")}, doctor.Fail, "damaged",
			"recovery"},
		{"anchor is not there", "", "", config.Environment{"NOISEGATE_CONTROL_ANCHOR": filepath.Join(s.dir, "new.anchor")}, doctor.Warn,
			"remembers nothing", "who removed it"},
		{"anchor cannot be written", "", "", config.Environment{"NOISEGATE_CONTROL_ANCHOR": filepath.Join(s.dir, "nowhere", "anchor")},
			doctor.Fail, "cannot be written", "write there"},
		{"too few connections", "", "", config.Environment{"NOISEGATE_DATASETS_CENSUS_CONNECTIONS": "999"}, doctor.Fail,
			"the gateway opens up to 1000", "max_connections"},
		{"a reader that writes", "GRANT INSERT ON people TO noisegate_reader", "REVOKE INSERT ON people FROM noisegate_reader", nil, doctor.Fail,
			"may do more with table", "REVOKE ALL ON"},
		{"another reader", "CREATE ROLE doctor_app LOGIN; GRANT SELECT ON people TO doctor_app",
			"DROP OWNED BY doctor_app; DROP ROLE doctor_app", nil, doctor.Warn, "as they are: doctor_app", "REVOKE SELECT"},
		{"another reader of a column", "CREATE ROLE doctor_app LOGIN; GRANT SELECT (age) ON people TO doctor_app",
			"DROP OWNED BY doctor_app; DROP ROLE doctor_app", nil, doctor.Warn, "as they are: doctor_app", "REVOKE SELECT"},
		{"another reader by SET ROLE", "CREATE ROLE doctor_group NOLOGIN; CREATE ROLE doctor_app LOGIN NOINHERIT IN ROLE doctor_group; " +
			"GRANT SELECT ON people TO doctor_group", "DROP OWNED BY doctor_group; DROP ROLE doctor_app, doctor_group", nil, doctor.Warn,
			"as they are: doctor_app", "REVOKE SELECT"},
		{"metrics for everybody", "", "", config.Environment{"NOISEGATE_ADMIN_LISTEN": ":9464", "NOISEGATE_ADMIN_INSECURE": "true"}, doctor.Warn,
			"reads the metrics", "only those who run the gateway"},
		{"tokens live on", "", "", nil, doctor.Warn, "a token that leaked is good until", "24h"},
		{"tokens do not", "", "", config.Environment{"NOISEGATE_AUTH_MAX_TOKEN_LIFE": "24h"}, doctor.OK, "tokens live for 24h0m0s at most", ""},
		{"revoked tokens", "", "", config.Environment{"NOISEGATE_AUTH_REVOKED_FILE": s.write(t, "revoked", "ana\n")}, doctor.Fail, "line 1",
			"subject NAME"},
		{"no keys", "", "", config.Environment{"NOISEGATE_AUTH_KEYS_HS256_FILE": "", "NOISEGATE_AUTH_KEYS_JWKS_URL": "http://127.0.0.1:1/keys"},
			doctor.Fail, "connection refused", "auth.keys"},
		{"a door without a catalog twin", "", "", config.Environment{"NOISEGATE_WIRE_LISTEN": "127.0.0.1:1"}, doctor.Warn, "57P03",
			"name an empty database"},
		{"a catalog twin of a superuser", "", "", config.Environment{"NOISEGATE_DATASETS_CENSUS_CATALOG_DSN": twinOf(s.database.super)},
			doctor.Warn, "is a superuser", "no superuser"},
		{"a catalog twin of somebody else", "", "", config.Environment{"NOISEGATE_DATASETS_CENSUS_CATALOG_DSN": twinOf("noisegate_reader")},
			doctor.Fail, "does not own the database", "OWNER TO"},
		{"a catalog twin without a limit", "CREATE ROLE doctor_twin LOGIN CREATEROLE; ALTER DATABASE doctor_twins OWNER TO doctor_twin",
			"ALTER DATABASE doctor_twins OWNER TO CURRENT_USER; DROP ROLE doctor_twin",
			config.Environment{"NOISEGATE_DATASETS_CENSUS_CATALOG_DSN": twinOf("doctor_twin")}, doctor.Warn, "no connection limit of 16",
			"CONNECTION LIMIT 16"},
		{"a changed table", "ALTER TABLE people RENAME age TO years", "ALTER TABLE people RENAME years TO age", nil, doctor.Fail,
			"changed since its policy was applied", "apply the policy again"},
		{"a ledger's role that rewrites", "control: GRANT UPDATE ON noisegate.entry TO noisegate",
			"control: REVOKE UPDATE ON noisegate.entry FROM noisegate",
			nil, doctor.Fail, "right UPDATE on the append-only table noisegate.entry", "REVOKE UPDATE"},
	} {
		if testing.Short() && i%4 > 0 { // each takes a tenth of a second
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			run := func(sql string) {
				database := demoProtected
				if text, ok := strings.CutPrefix(sql, "control: "); ok {
					database, sql = demoControl, text
				}
				if err := s.database.as(t.Context(), s.database.super, database, func(conn *pgx.Conn) error {
					_, err := conn.Exec(t.Context(), sql)
					return err
				}); err != nil {
					t.Fatal(err)
				}
			}
			run(c.spoil)
			defer run(c.undo)
			expect(t, c.env, c.level, c.text, c.fix)
		})
	}

	// Where people log in to the console.
	said := `, "code_challenge_methods_supported": ["S256"]`
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		base := "http://" + r.Host
		if r.URL.Path == "/keys" {
			_, _ = io.WriteString(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`)
			return
		}
		fmt.Fprintf(w, `{"issuer": %q, "authorization_endpoint": %q, "token_endpoint": %q%s}`, base, base+"/auth", base+"/token", said)
	}))
	defer issuer.Close()
	at := func(issuedBy string) config.Environment {
		return config.Environment{"NOISEGATE_AUTH_ISSUER": issuedBy, "NOISEGATE_AUTH_KEYS_HS256_FILE": "",
			"NOISEGATE_AUTH_KEYS_JWKS_URL": issuer.URL + "/keys", "NOISEGATE_AUTH_CONSOLE_CLIENT_ID": "web"}
	}
	expect(t, at(issuer.URL), doctor.OK, "log in to the console at "+issuer.URL+", as its client web", "")
	expect(t, at(issuer.URL+"/realm"), doctor.Fail, "describes another issuer", "openid-configuration")
	said = ""
	expect(t, at(issuer.URL), doctor.Warn, "does not say whether it takes PKCE", "documentation")

	// Prepared tables are looked at as the role that prepares them.
	prepares := s.write(t, "prepares.policy.yaml", string(demoPolicy))
	s.expect(t, nil, exitOK, "version 2 applied", "policy", "apply", prepares)
	preparer := config.Environment{"NOISEGATE_DATASETS_CENSUS_PREPARE_DSN": s.database.dsn("noisegate_prepare", demoProtected).Reveal()}
	expect(t, nil, doctor.Warn, "the policy asks for prepared copies", "noisegate_prepare")
	expect(t, preparer, doctor.Warn, "no copy of", "noisegate prepare --dataset census")
	s.expect(t, preparer, exitOK, "version 1", "prepare", "--dataset=census")
	expect(t, preparer, doctor.OK, "a copy of visits serves", "")
}
