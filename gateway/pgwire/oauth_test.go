package pgwire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

const testIssuer = "https://issuer.test/"

// TestOAuth: a client that says so shows its token by OAUTHBEARER; who may come in are those that may with a password.
func TestOAuth(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, func(c *Config) { c.Issuer = testIssuer })
	d.tokens.Withdraw("old:analyst", fault.AuthExpired(time.Unix(0, 0)))
	const oauth, mistyped, password = "?options=-c%20noisegate.auth%3Doauth", "?options=-c%20noisegate.auth%3Doaut", "?application_name=x"
	for name, c := range map[string]struct{ user, token, options, state string }{
		"an analyst":               {"ana", "ana:analyst", oauth, ""},
		"beside a setting":         {"ana", "ana:analyst", oauth + "%20-c%20noisegate.epsilon%3D0.1", ""},
		"a password":               {"ana", "ana:analyst", password, statePassword},
		"another's token":          {"eve", "ana:analyst", oauth, stateLogin},
		"a forged token":           {"ana", "forged", oauth, stateLogin},
		"an old token":             {"old", "old:analyst", oauth, stateLogin},
		"a steward":                {"sam", "sam:steward", oauth, stateLogin},
		"an unknown way":           {"ana", "ana:analyst", mistyped, stateValue},
		"a setting that is not":    {"ana", "ana:analyst", oauth + "%20-c%20noisegate.epsilom%3D1", stateUnknownSetting},
		"no token and no password": {"ana", "", oauth, stateLogin},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := pgconn.ParseConfig("postgres://" + c.user + ":wrong@" + d.address + "/census" + c.options + "&sslmode=disable")
			if err != nil {
				t.Fatal(err)
			}
			config.OAuthTokenProvider = func(context.Context) (string, error) { return c.token, nil }
			conn, err := pgconn.ConnectConfig(t.Context(), config)
			if c.state == "" {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := conn.Exec(t.Context(), "SELECT 1").ReadAll(); err != nil {
					t.Error(err)
				}
				_ = conn.Close(t.Context())
				return
			}
			var refused *pgconn.PgError
			if !errors.As(err, &refused) { // pgx does not read on after it was told where tokens come from
				if c.state != stateLogin || err == nil || !strings.Contains(err.Error(), "invalid_token") {
					t.Errorf("got %v, want SQLSTATE %s", err, c.state)
				}
			} else if refused.Code != c.state {
				t.Errorf("got %v, want SQLSTATE %s", err, c.state)
			}
		})
	}
}

// TestOAuthTellsTheProvider: a client without a token, as libpq is at first, is told where its issuer's configuration is, and then refused.
func TestOAuthTellsTheProvider(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, func(c *Config) { c.Issuer = testIssuer })
	for name, c := range map[string]struct {
		first, second pgproto3.FrontendMessage
		state         string
	}{
		"no token":          {bearing("n,,\x01auth=\x01\x01"), &pgproto3.SASLResponse{Data: []byte{1}}, stateLogin},
		"a forged token":    {bearing("n,,\x01auth=Bearer forged\x01\x01"), &pgproto3.SASLResponse{Data: []byte{1}}, stateLogin},
		"another mechanism": {&pgproto3.SASLInitialResponse{AuthMechanism: "SCRAM-SHA-256", Data: []byte("n,,n=,r=x")}, nil, stateProtocol},
		"channel binding":   {bearing("p=tls-unique,,\x01auth=Bearer x\x01\x01"), nil, stateProtocol},
		"somebody else":     {bearing("n,a=eve,\x01auth=Bearer x\x01\x01"), nil, stateProtocol},
		"not a message":     {bearing("Bearer x"), nil, stateProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			r := d.dial(t)
			_, _ = r.Write(packet(v30, "user\x00ana\x00database\x00census\x00options\x00-c "+authSetting+"=oauth\x00\x00"))
			client := pgproto3.NewFrontend(r, r)
			receive := func() pgproto3.BackendMessage {
				m, err := client.Receive()
				if err != nil {
					t.Fatal(err)
				}
				return m
			}
			if m, ok := receive().(*pgproto3.AuthenticationSASL); !ok || len(m.AuthMechanisms) != 1 || m.AuthMechanisms[0] != bearerMechanism {
				t.Fatalf("asked by %+v", m)
			}
			client.Send(c.first)
			_ = client.Flush()
			if c.second != nil {
				var told map[string]string
				m, ok := receive().(*pgproto3.AuthenticationSASLContinue)
				if !ok || json.Unmarshal(m.Data, &told) != nil || told["status"] != "invalid_token" ||
					told["openid-configuration"] != "https://issuer.test/.well-known/openid-configuration" {
					t.Fatalf("told %v", told)
				}
				client.Send(c.second)
				_ = client.Flush()
			}
			if m, ok := receive().(*pgproto3.ErrorResponse); !ok || m.Code != c.state || m.Severity != "FATAL" {
				t.Errorf("got %+v, want SQLSTATE %s", m, c.state)
			}
		})
	}
}

func bearing(text string) pgproto3.FrontendMessage {
	return &pgproto3.SASLInitialResponse{AuthMechanism: bearerMechanism, Data: []byte(text)}
}

// FuzzBearer: a token is what stands between its pair's name and the byte that ends it, and nothing else is taken for one.
func FuzzBearer(f *testing.F) {
	for _, text := range []string{"n,,\x01auth=Bearer abc\x01\x01", "y,,\x01host=h\x01port=1\x01auth=bearer  abc\x01\x01",
		"n,,\x01auth=\x01\x01", "n,,\x01\x01",
		"n,,\x01auth=Bearer a\x01auth=Bearer b\x01\x01", "n,,\x01auth=Basic abc\x01\x01", "p=x,,\x01auth=Bearer a\x01\x01"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		token, ok := bearer(message)
		if !ok {
			if token != "" {
				t.Errorf("a token %q of a message that is refused", token)
			}
			return
		}
		if n := bytes.Count(message, []byte("\x01auth=")); n != 1 || !bytes.HasSuffix(message, []byte("\x01\x01")) {
			t.Errorf("%q is taken", message)
		}
		if token != "" && !bytes.Contains(message, []byte(" "+token+"\x01")) {
			t.Errorf("%q is no token of %q", token, message)
		}
	})
}
