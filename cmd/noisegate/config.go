package main

import (
	"log/slog"
	"time"

	"noisegate/gateway"
	"noisegate/internal/pgversion"
)

// Config is noisegate.yaml. Every key can also be given as an environment variable, which wins: http.listen is
// NOISEGATE_HTTP_LISTEN, datasets.census.dsn is NOISEGATE_DATASETS_CENSUS_DSN. Secrets come from the file, the
// environment or files that it names; no command line flag takes one.
type Config struct {
	HTTP     HTTPConfig
	Control  ControlConfig
	Auth     AuthConfig
	Limits   LimitsConfig
	Versions pgversion.Policy // which versions of PostgreSQL are accepted
	Datasets map[string]*DatasetConfig
}

// HTTPConfig is where the gateway listens.
type HTTPConfig struct {
	Listen      string
	TLSCertFile string
	TLSKeyFile  string
	Insecure    bool // allows plain HTTP on an address that other machines can reach
}

// ControlConfig is the control database: ledger, policies, releases.
type ControlConfig struct {
	DSN      DSN  // the ledger role, for serving
	OwnerDSN DSN  // the owner role, for `migrate` only; DSN when empty
	Insecure bool // allows a connection over a network without verified TLS

	Anchor         string // a file that remembers where the ledger ended; see journal.Anchor
	ReceiptKeyFile string // Ed25519, PKCS #8 PEM: signs the receipts of answers
}

// AuthConfig says whose tokens are believed.
type AuthConfig struct {
	Issuer   string
	Audience string
	Keys     KeysConfig
	Claims   ClaimsConfig
}

// KeysConfig is where the keys come from that tokens are checked with: exactly one of the three.
type KeysConfig struct {
	JWKSURL   string
	JWKSFile  string
	HS256File string
}

// ClaimsConfig names the claims that hold subject, roles and groups.
type ClaimsConfig struct {
	Subject string
	Roles   string
	Groups  string
}

// LimitsConfig says how analysts share the gateway; see gateway.Fairness.
type LimitsConfig struct {
	Places     int // requests that cost work, at a time, of all analysts
	PerAnalyst int // of one analyst
	Queue      int // of one analyst, that wait for a place
	Wait       time.Duration
}

// DatasetConfig is one protected database.
type DatasetConfig struct {
	DSN              DSN
	StatementTimeout time.Duration
	Quantum          time.Duration // answers leave at quantum·2ᵏ; 0 switches that off
	Connections      int           // at most that many at a time
	Insecure         bool          // as in ControlConfig
	StewardKeysFile  string        // public keys of those whose signature alone raises caps; see journal.StewardKeys
}

// timeout is what a statement may really take: up to the last boundary at which a failure can leave.
func (d *DatasetConfig) timeout() time.Duration {
	return gateway.EffectiveTimeout(d.Quantum, d.StatementTimeout)
}

func newConfig() *Config {
	return &Config{
		HTTP: HTTPConfig{Listen: "127.0.0.1:8080"},
		Auth: AuthConfig{Claims: ClaimsConfig{Subject: "sub", Roles: "roles", Groups: "groups"}},
		Limits: LimitsConfig{Places: gateway.DefaultPlaces, PerAnalyst: gateway.DefaultPerAnalyst, Queue: gateway.DefaultQueue,
			Wait: gateway.DefaultWait},
		Versions: pgversion.OnlyTested,
		Datasets: map[string]*DatasetConfig{},
	}
}

func newDatasetConfig() *DatasetConfig {
	return &DatasetConfig{StatementTimeout: 30 * time.Second, Quantum: 50 * time.Millisecond, Connections: 16}
}

// DSN is a PostgreSQL connection string. It may hold a password, so it is kept behind a pointer that no way of
// printing a configuration follows; [DSN.Reveal] is for opening the connection.
type DSN struct{ text *string }

func newDSN(text string) DSN { return DSN{&text} }

// Reveal gives the connection string; "" when none was configured.
func (d DSN) Reveal() string {
	if d.text == nil {
		return ""
	}
	return *d.text
}

// IsZero reports whether no connection string was configured.
func (d DSN) IsZero() bool { return d.Reveal() == "" }

func (DSN) String() string { return "(redacted)" }

// LogValue keeps the connection string out of logs.
func (DSN) LogValue() slog.Value { return slog.StringValue("(redacted)") }
