// Package config is the configuration of a gateway: it reads noisegate.yaml and variables, refuses what is incomplete or
// dangerous, and opens the files that it names.
//
// It knows the keys, their defaults and their limits. It does not know databases: whether they answer, and what a role
// may do there, is looked at when a gateway starts.
package config

import (
	"log/slog"
	"os"
	"time"

	"noisegate.example/gateway"
	"noisegate.example/gateway/pgwire"
	"noisegate.example/internal/pgversion"
)

// Config is noisegate.yaml. Every key can also be given as an environment variable, which wins: http.listen is
// NOISEGATE_HTTP_LISTEN, datasets.census.dsn is NOISEGATE_DATASETS_CENSUS_DSN. Secrets come from the file, the
// environment or files that it names; no command line flag takes one.
type Config struct {
	HTTP     HTTP
	Wire     Wire
	Admin    Admin
	Control  Control
	Auth     Auth
	Limits   Limits
	Memory   Memory
	Versions pgversion.Policy // which versions of PostgreSQL are accepted
	Datasets map[string]*Dataset
}

// HTTP is where the gateway listens.
type HTTP struct {
	Listen      string
	TLSCertFile string
	TLSKeyFile  string
	Insecure    bool // allows plain HTTP on an address that other machines can reach
}

// Wire is where the gateway speaks PostgreSQL's protocol.
type Wire struct {
	Listen             string // "": nowhere
	TLSCertFile        string // needed on an address that other machines can reach
	TLSKeyFile         string
	Sessions           int // clients that are logged in at a time
	SessionsPerAnalyst int
	Idle               time.Duration // after which a session ends whose client says nothing
}

// Admin is the address for the gateway's operators.
type Admin struct {
	Listen   string // "": nowhere
	Insecure bool   // allows an address that other machines can reach
}

// Control is the control database: ledger, policies, releases.
type Control struct {
	DSN      DSN  // the ledger role, for serving
	OwnerDSN DSN  // the owner role, for `migrate` only; DSN when empty
	Insecure bool // allows a connection over a network without verified TLS

	Anchor         string // a file that remembers where the ledger ended, see journal.Anchor; "": none
	anchorDefault  bool   // nobody said where it is, nor that there is none; see [Load]
	Gateway        string // this gateway's name among those of the control database; see [Config.GatewayName]
	Replication    string // AsyncAccepted, or ""
	ReceiptKeyFile string // Ed25519, PKCS #8 PEM: signs the receipts of answers
}

// AnchorIsDefault reports whether the anchor is where nobody asked for it to be.
func (c Control) AnchorIsDefault() bool { return c.anchorDefault }

// NoAnchor, for control.anchor, says that there is none.
const NoAnchor = "off"

// AsyncAccepted says that who runs the gateway takes it for granted that a failover of the control database may lose
// what was committed last: then datasets are held until a steward has looked.
const AsyncAccepted = "async-accepted"

// GatewayName is what this gateway is called among those of its control database: the same each time that it is started.
func (c *Config) GatewayName() string {
	if c.Control.Gateway != "" {
		return c.Control.Gateway
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unnamed"
	}
	return host + " " + c.HTTP.Listen
}

// Auth says whose tokens are believed.
type Auth struct {
	Issuer   string
	Audience string
	Keys     Keys
	Claims   Claims
	// RevokedFile lists tokens that are not believed any more; see auth.Config.
	RevokedFile string
	// MaxTokenLife is how long a token may live; 0: as long as its issuer says.
	MaxTokenLife time.Duration
	Console      Console
}

// Console is the client of the issuer as which people log in who open the console.
type Console struct {
	ClientID string // "": people paste a token
	Scopes   string
}

// Keys is where the keys come from that tokens are checked with: exactly one of the three.
type Keys struct {
	JWKSURL   string
	JWKSFile  string
	HS256File string
}

// Claims names the claims that hold subject, roles and groups.
type Claims struct {
	Subject string
	Roles   string
	Groups  string
}

// Memory says what the gateway takes of it.
type Memory struct {
	Answers int64 // bytes for answers that are computed, kept or not read yet; 0: a quarter of GOMEMLIMIT, else 128 MiB
}

// Limits says how analysts share the gateway; see gateway.Fairness.
type Limits struct {
	Places     int // requests that cost work, at a time, of all analysts
	PerAnalyst int // of one analyst
	Queue      int // of one analyst, that wait for a place
	Wait       time.Duration
}

// Dataset is one protected database.
type Dataset struct {
	DSN              DSN
	StatementTimeout time.Duration
	Quantum          time.Duration // answers leave at quantum·2ᵏ; 0 switches that off
	Connections      int           // at most that many at a time
	TrialTime        time.Duration // of the server's, that trials of one analyst's statements may take within a minute
	Insecure         bool          // as in Control
	PrepareDSN       DSN           // of the role that prepares tables, for that alone; none: only who has one elsewhere prepares
	CatalogDSN       DSN           // of the catalog twin, as its owner; none: queries about names and types are refused
	StewardKeysFile  string        // public keys of those whose signature raises caps, and approves what takes two stewards
}

// Timeout is what a statement may really take: up to the last boundary at which a failure can leave.
func (d *Dataset) Timeout() time.Duration {
	return gateway.EffectiveTimeout(d.Quantum, d.StatementTimeout)
}

// Error is a mistake in a configuration, or in a file that it names.
type Error struct{ error }

func (e Error) Unwrap() error { return e.error }

// Wrong makes an [Error] of a cause; nil of nil.
func Wrong(err error) error {
	if err == nil {
		return nil
	}
	return Error{err}
}

// New is a configuration with all defaults, and no dataset.
func New() *Config {
	return &Config{
		HTTP: HTTP{Listen: "127.0.0.1:8080"},
		Wire: Wire{Sessions: pgwire.DefaultSessions, SessionsPerAnalyst: pgwire.DefaultSessionsPerAnalyst, Idle: pgwire.DefaultIdle},
		Auth: Auth{Claims: Claims{Subject: "sub", Roles: "roles", Groups: "groups"}, Console: Console{Scopes: "openid"}},
		Limits: Limits{Places: gateway.DefaultPlaces, PerAnalyst: gateway.DefaultPerAnalyst, Queue: gateway.DefaultQueue,
			Wait: gateway.DefaultWait},
		Versions: pgversion.OnlyTested,
		Datasets: map[string]*Dataset{},
	}
}

// NewDataset is a dataset with all defaults.
func NewDataset() *Dataset {
	return &Dataset{StatementTimeout: 30 * time.Second, Quantum: 50 * time.Millisecond, Connections: 16, TrialTime: 2 * time.Second}
}

// DSN is a PostgreSQL connection string. It may hold a password, so it is kept behind a pointer that no way of
// printing a configuration follows; [DSN.Reveal] is for opening the connection.
type DSN struct{ text *string }

// NewDSN takes a connection string.
func NewDSN(text string) DSN { return DSN{&text} }

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
