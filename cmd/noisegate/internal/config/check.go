package config

import (
	"maps"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Hard limits of the configuration: outside them a gateway would be unsafe or useless, so it does not start.
const (
	maxStatementTimeout = time.Hour
	maxTrialTime        = time.Minute
	maxQuantum          = 10 * time.Second
	maxConnections      = 1000
	maxConcurrent       = 10_000
	maxSessions         = 100_000
	minAnswers          = 32 << 20
	maxWait             = 10 * time.Minute
)

// datasetName is what a dataset may be called: it stands in URLs and in names of environment variables.
var datasetName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// ValidDataset reports whether a dataset may be called that.
func ValidDataset(name string) bool { return datasetName.MatchString(name) }

// check refuses a configuration that is incomplete or dangerous. It reports everything that is wrong, not only the
// first thing, and never a secret's value.
func (l *loader) check() {
	c := l.config
	l.checkHTTP(c.HTTP)
	l.checkWire(c.Wire)
	if c.Memory.Answers != 0 && c.Memory.Answers < minAnswers {
		l.wrong("memory.answers", "must be %dMiB at least", minAnswers>>20)
	}
	l.checkAdmin(c.Admin)
	l.dsn("control.dsn", c.Control.DSN, c.Control.Insecure)
	if !c.Control.OwnerDSN.IsZero() {
		l.dsn("control.owner_dsn", c.Control.OwnerDSN, c.Control.Insecure)
	}
	if c.Control.Replication != "" && c.Control.Replication != AsyncAccepted {
		l.wrong("control.replication", "must be %s, or nothing", AsyncAccepted)
	}
	l.checkAuth(c.Auth)
	l.between("limits.places", c.Limits.Places, 1, maxConcurrent)
	l.between("limits.per_analyst", c.Limits.PerAnalyst, 1, max(c.Limits.Places, 1))
	l.between("limits.queue", c.Limits.Queue, 1, maxConcurrent)
	if c.Limits.Wait < time.Second || c.Limits.Wait > maxWait {
		l.wrong("limits.wait", "must be between 1s and %s", maxWait)
	}
	if len(c.Datasets) == 0 {
		l.wrong("datasets", "is missing: name at least one protected database")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Datasets)) {
		l.checkDataset(name, c.Datasets[name])
	}
}

func (l *loader) checkHTTP(c HTTP) {
	host, port, err := net.SplitHostPort(c.Listen)
	switch {
	case err != nil || port == "":
		l.wrong("http.listen", "must be host:port, such as 127.0.0.1:8080")
	case !isLoopback(host) && c.TLSCertFile == "" && !c.Insecure:
		l.wrong("http.listen", "other machines can reach this address, and tokens would cross the network in clear: "+
			"give http.tls_cert_file and http.tls_key_file, or say http.insecure: true when a proxy in front ends TLS")
	}
	if (c.TLSCertFile == "") != (c.TLSKeyFile == "") {
		l.wrong("http", "tls_cert_file and tls_key_file go together")
	}
}

func (l *loader) checkWire(c Wire) {
	if (c.TLSCertFile == "") != (c.TLSKeyFile == "") {
		l.wrong("wire", "tls_cert_file and tls_key_file go together")
	}
	l.between("wire.sessions", c.Sessions, 1, maxSessions)
	if c.Idle <= 0 {
		l.wrong("wire.idle", "must be positive")
	}
	l.between("wire.sessions_per_analyst", c.SessionsPerAnalyst, 1, max(c.Sessions, 1))
	if c.Listen == "" {
		return
	}
	host, port, err := net.SplitHostPort(c.Listen)
	switch {
	case err != nil || port == "":
		l.wrong("wire.listen", "must be host:port, such as 127.0.0.1:6432")
	case !isLoopback(host) && c.TLSCertFile == "":
		l.wrong("wire.listen", "other machines can reach this address, and tokens would cross the network in clear: "+
			"give wire.tls_cert_file and wire.tls_key_file")
	}
}

func (l *loader) checkAdmin(c Admin) {
	if c.Listen == "" {
		return
	}
	host, port, err := net.SplitHostPort(c.Listen)
	switch {
	case err != nil || port == "":
		l.wrong("admin.listen", "must be host:port, such as 127.0.0.1:9464")
	case !isLoopback(host) && !c.Insecure:
		l.wrong("admin.listen", "other machines can reach this address, where nobody needs a token: take a loopback address, or say "+
			"admin.insecure: true where only those who run the gateway reach it")
	}
}

func (l *loader) checkAuth(c Auth) {
	l.present("auth.issuer", c.Issuer)
	l.present("auth.audience", c.Audience)
	l.present("auth.claims.subject", c.Claims.Subject)
	l.present("auth.claims.roles", c.Claims.Roles)
	l.present("auth.claims.groups", c.Claims.Groups)
	if c.MaxTokenLife < 0 || c.MaxTokenLife > 0 && c.MaxTokenLife < time.Minute {
		l.wrong("auth.max_token_life", "must be at least 1m, or 0s: as long as the issuer says")
	}
	given := 0
	for _, s := range []string{c.Keys.JWKSURL, c.Keys.JWKSFile, c.Keys.HS256File} {
		if s != "" {
			given++
		}
	}
	if given != 1 {
		l.wrong("auth.keys", "must name exactly one of jwks_url, jwks_file and hs256_file")
	}
	if c.Keys.JWKSURL != "" && !isSafeURL(c.Keys.JWKSURL) {
		l.wrong("auth.keys.jwks_url", "must be an https URL: whoever can change the keys can make tokens")
	}
	if c.Console.ClientID != "" {
		l.checkConsole(c)
	}
}

func (l *loader) checkConsole(c Auth) {
	if c.Keys.HS256File != "" {
		l.wrong("auth.console.client_id", "has no meaning with auth.keys.hs256_file: nobody logs in with a secret of the operator's own")
	}
	if !isSafeURL(c.Issuer) {
		l.wrong("auth.console.client_id", "people log in at auth.issuer, which must be an https URL then")
	}
	if !slices.Contains(strings.Fields(c.Console.Scopes), "openid") {
		l.wrong("auth.console.scopes", "must have openid")
	}
}

// isSafeURL reports whether what comes from an address is what its owner said: through TLS, or from this machine.
func isSafeURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()))
}

func (l *loader) checkDataset(name string, d *Dataset) {
	if !ValidDataset(name) {
		l.wrong("datasets."+name, "a dataset's name is made of a-z, 0-9, _ and -, and begins with a letter")
	}
	l.dsn(datasetKey(name, "dsn"), d.DSN, d.Insecure)
	if !d.DSN.IsZero() && d.DSN.Reveal() == l.config.Control.DSN.Reveal() {
		l.wrong(datasetKey(name, "dsn"), "is the control database's connection string: the protected data needs a role of its own that "+
			"can only read")
	}
	if !d.CatalogDSN.IsZero() {
		l.checkCatalog(name, d)
	}
	if !d.PrepareDSN.IsZero() {
		l.checkPrepare(name, d)
	}
	if d.StatementTimeout <= 0 || d.StatementTimeout > maxStatementTimeout {
		l.wrong(datasetKey(name, "statement_timeout"), "must be above 0 and at most %s", maxStatementTimeout)
	}
	if d.TrialTime <= 0 || d.TrialTime > maxTrialTime {
		l.wrong(datasetKey(name, "trial_time"), "must be above 0 and at most %s", maxTrialTime)
	}
	if d.Quantum < 0 || d.Quantum > maxQuantum {
		l.wrong(datasetKey(name, "quantum"), "must be between 0 (off) and %s", maxQuantum)
	}
	if d.Quantum > 0 && d.Quantum <= maxQuantum && d.StatementTimeout > 0 && d.StatementTimeout < d.Quantum {
		l.wrong(datasetKey(name, "statement_timeout"), "must be at least the quantum, %s: a failure leaves at a boundary as answers do, "+
			"and the first one is there", d.Quantum)
	}
	l.between(datasetKey(name, "connections"), d.Connections, 1, maxConnections)
}

// checkPrepare refuses a database that the gateway does not read, and a role that it reads with: what writes copies is to be another one.
func (l *loader) checkPrepare(name string, d *Dataset) {
	key := datasetKey(name, "prepare_dsn")
	l.dsn(key, d.PrepareDSN, d.Insecure)
	prepare, err1 := pgconn.ParseConfig(d.PrepareDSN.Reveal())
	reader, err2 := pgconn.ParseConfig(d.DSN.Reveal())
	switch {
	case err1 != nil || err2 != nil:
	case prepare.User == reader.User:
		l.wrong(key, "has the role of %s: the gateway's role only reads, and copies are written by a role of their own", datasetKey(name, "dsn"))
	case prepare.Database != reader.Database:
		l.wrong(key, "leads to another database than %s", datasetKey(name, "dsn"))
	}
}

// checkCatalog refuses databases that hold something, of whatever dataset: building a twin drops all that is there.
func (l *loader) checkCatalog(name string, d *Dataset) {
	key := datasetKey(name, "catalog_dsn")
	l.dsn(key, d.CatalogDSN, d.Insecure)
	others := []DSN{l.config.Control.DSN, l.config.Control.OwnerDSN}
	for other, dataset := range l.config.Datasets {
		if others = append(others, dataset.DSN); other != name && !dataset.CatalogDSN.IsZero() {
			others = append(others, dataset.CatalogDSN)
		}
		if !dataset.PrepareDSN.IsZero() {
			others = append(others, dataset.PrepareDSN)
		}
	}
	for _, other := range others {
		if sameDatabase(d.CatalogDSN, other) {
			l.wrong(key, "is the database of another connection string: everything in it would be dropped")
			return
		}
	}
}

// sameDatabase reports whether two connection strings lead to one database, as any user. They do by one of the hosts of either, as they are
// written, or on this machine, where sockets of two directories are two servers.
func sameDatabase(a, b DSN) bool {
	x, err1 := pgconn.ParseConfig(a.Reveal())
	y, err2 := pgconn.ParseConfig(b.Reveal())
	if err1 != nil || err2 != nil || x.Database != y.Database {
		return false
	}
	for _, one := range hosts(x) {
		for _, other := range hosts(y) {
			here := isLoopback(one.Host) && isLocal(other.Host) || isLocal(one.Host) && isLoopback(other.Host)
			if one.Port == other.Port && (here || one.Host == other.Host) {
				return true
			}
		}
	}
	return false
}

func hosts(c *pgconn.Config) []*pgconn.FallbackConfig {
	return append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port}}, c.Fallbacks...)
}

func (l *loader) present(key string, value string) {
	if strings.TrimSpace(value) == "" {
		l.wrong(key, "is missing")
	}
}

func (l *loader) between(key string, value, lo, hi int) {
	if value < lo || value > hi {
		l.wrong(key, "must be between %d and %d", lo, hi)
	}
}

// dsn checks that a connection string can be understood, and that nobody on the way can read or change what flows:
// a unix socket, the loopback interface, or TLS that verifies the server's name. The library's own error is not
// shown, since it may quote the string.
func (l *loader) dsn(key string, dsn DSN, insecure bool) {
	if dsn.IsZero() {
		l.wrong(key, "is missing")
		return
	}
	parsed, err := pgconn.ParseConfig(dsn.Reveal())
	if err != nil {
		l.wrong(key, "is not a PostgreSQL connection string such as postgres://role@host/database")
		return
	}
	if insecure {
		return
	}
	ways := []*pgconn.FallbackConfig{{Host: parsed.Host, TLSConfig: parsed.TLSConfig}}
	for _, way := range append(ways, parsed.Fallbacks...) {
		verified := way.TLSConfig != nil && !way.TLSConfig.InsecureSkipVerify
		if !isLocal(way.Host) && !verified {
			l.wrong(key, "the connection to %s is not verified: add sslmode=verify-full, or say %s.insecure: true",
				way.Host, key[:strings.LastIndexByte(key, '.')])
			return
		}
	}
}

// isLocal reports whether a host is this machine: a directory of sockets, or the loopback interface.
func isLocal(host string) bool { return strings.HasPrefix(host, "/") || isLoopback(host) }

// isLoopback reports whether a host means this machine alone.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
