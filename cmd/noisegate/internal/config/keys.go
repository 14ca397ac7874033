package config

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"noisegate.example/internal/pgversion"
)

// setting is one key of the configuration. The list of settings is the only place that knows the names: file and
// environment are both read through it.
type setting struct {
	key string
	set func(text string) error
}

func (c *Config) settings() []setting {
	list := []setting{
		{"http.listen", text(&c.HTTP.Listen)},
		{"http.tls_cert_file", text(&c.HTTP.TLSCertFile)},
		{"http.tls_key_file", text(&c.HTTP.TLSKeyFile)},
		{"http.insecure", boolean(&c.HTTP.Insecure)},
		{"wire.listen", text(&c.Wire.Listen)},
		{"wire.tls_cert_file", text(&c.Wire.TLSCertFile)},
		{"wire.tls_key_file", text(&c.Wire.TLSKeyFile)},
		{"wire.sessions", number(&c.Wire.Sessions)},
		{"wire.sessions_per_analyst", number(&c.Wire.SessionsPerAnalyst)},
		{"wire.idle", duration(&c.Wire.Idle)},
		{"admin.listen", text(&c.Admin.Listen)},
		{"admin.insecure", boolean(&c.Admin.Insecure)},
		{"control.dsn", secret(&c.Control.DSN)},
		{"control.owner_dsn", secret(&c.Control.OwnerDSN)},
		{"control.insecure", boolean(&c.Control.Insecure)},
		{"control.anchor", text(&c.Control.Anchor)},
		{"control.gateway", text(&c.Control.Gateway)},
		{"control.replication", text(&c.Control.Replication)},
		{"control.receipt_key_file", text(&c.Control.ReceiptKeyFile)},
		{"auth.issuer", text(&c.Auth.Issuer)},
		{"auth.audience", text(&c.Auth.Audience)},
		{"auth.keys.jwks_url", text(&c.Auth.Keys.JWKSURL)},
		{"auth.keys.jwks_file", text(&c.Auth.Keys.JWKSFile)},
		{"auth.keys.hs256_file", text(&c.Auth.Keys.HS256File)},
		{"auth.claims.subject", text(&c.Auth.Claims.Subject)},
		{"auth.claims.roles", text(&c.Auth.Claims.Roles)},
		{"auth.claims.groups", text(&c.Auth.Claims.Groups)},
		{"auth.revoked_file", text(&c.Auth.RevokedFile)},
		{"auth.max_token_life", duration(&c.Auth.MaxTokenLife)},
		{"auth.console.client_id", text(&c.Auth.Console.ClientID)},
		{"auth.console.scopes", text(&c.Auth.Console.Scopes)},
		{"limits.places", number(&c.Limits.Places)},
		{"limits.per_analyst", number(&c.Limits.PerAnalyst)},
		{"limits.queue", number(&c.Limits.Queue)},
		{"limits.wait", duration(&c.Limits.Wait)},
		{"memory.answers", size(&c.Memory.Answers)},
		{"versions", versions(&c.Versions)},
	}
	for _, name := range slices.Sorted(maps.Keys(c.Datasets)) {
		d := c.Datasets[name]
		list = append(list,
			setting{datasetKey(name, "dsn"), secret(&d.DSN)},
			setting{datasetKey(name, "statement_timeout"), duration(&d.StatementTimeout)},
			setting{datasetKey(name, "quantum"), duration(&d.Quantum)},
			setting{datasetKey(name, "connections"), number(&d.Connections)},
			setting{datasetKey(name, "trial_time"), duration(&d.TrialTime)},
			setting{datasetKey(name, "insecure"), boolean(&d.Insecure)},
			setting{datasetKey(name, "prepare_dsn"), secret(&d.PrepareDSN)},
			setting{datasetKey(name, "catalog_dsn"), secret(&d.CatalogDSN)},
			setting{datasetKey(name, "steward_keys_file"), text(&d.StewardKeysFile)},
		)
	}
	return list
}

// unknown says that a key or a variable is no setting; of one that was, what took its place.
func unknown(key string) string {
	const retired = "limits.concurrent_queries"
	if key == retired || key == variableName(retired) {
		return "there is no such setting any more: limits.per_analyst is how many requests of an analyst run at a time, limits.queue how " +
			"many wait"
	}
	return "there is no such setting"
}

func datasetKey(name, key string) string { return "datasets." + name + "." + key }

// prefix begins the name of every variable that Noisegate reads.
const prefix = "NOISEGATE_"

// sections are the configuration's top-level keys as they stand in variables. A variable that begins with one of them
// must name a key: a misspelt NOISEGATE_HTTP_INSECURE must not pass in silence.
func sections() []string {
	return []string{"HTTP", "WIRE", "ADMIN", "CONTROL", "AUTH", "LIMITS", "MEMORY", "VERSIONS", "DATASETS"}
}

// variableName is the environment variable of a key.
func variableName(key string) string {
	return prefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key))
}

func text(to *string) func(string) error {
	return func(s string) error { *to = s; return nil }
}

func secret(to *DSN) func(string) error {
	return func(s string) error { *to = NewDSN(s); return nil }
}

func boolean(to *bool) func(string) error {
	return func(s string) error {
		if s != "true" && s != "false" {
			return errors.New("must be true or false")
		}
		*to = s == "true"
		return nil
	}
}

// read sets a value that a function reads from a text; otherwise is the error for other texts.
func read[T any](to *T, from func(string) (T, error), otherwise string) func(string) error {
	return func(s string) error {
		value, err := from(s)
		if err != nil {
			return errors.New(otherwise)
		}
		*to = value
		return nil
	}
}

func number(to *int) func(string) error { return read(to, strconv.Atoi, "must be a whole number") }

// size takes a number of bytes, as GOMEMLIMIT does.
func size(to *int64) func(string) error {
	return func(s string) error {
		digits, shift := s, 0
		for i, unit := range []string{"KiB", "MiB", "GiB"} {
			if before, ok := strings.CutSuffix(s, unit); ok {
				digits, shift = before, 10*(i+1)
			}
		}
		n, err := strconv.ParseInt(digits, 10, 32)
		if err != nil || n < 0 {
			return errors.New("must be a size such as 200MiB")
		}
		*to = n << shift
		return nil
	}
}

func versions(to *pgversion.Policy) func(string) error {
	return func(s string) (err error) {
		*to, err = pgversion.Parse(s)
		return err
	}
}

func duration(to *time.Duration) func(string) error {
	return read(to, time.ParseDuration, "must be a duration such as 30s or 50ms")
}
