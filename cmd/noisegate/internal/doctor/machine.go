package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"noisegate.example/budget/journal"
	"noisegate.example/gateway/auth"
)

// files looks at who may read secrets and change what is believed.
func (d *doctor) files() {
	if d.file != "" {
		d.secret("configuration", d.file) // connection strings may hold passwords
	}
	for _, f := range []struct{ key, path string }{
		{"http.tls_key_file", d.config.HTTP.TLSKeyFile}, {"wire.tls_key_file", d.config.Wire.TLSKeyFile},
		{"control.receipt_key_file", d.config.Control.ReceiptKeyFile}, {"auth.keys.hs256_file", d.config.Auth.Keys.HS256File},
	} {
		if f.path != "" {
			d.secret(f.key, f.path)
		}
	}
	public := map[string]string{"auth.keys.jwks_file": d.config.Auth.Keys.JWKSFile, "auth.revoked_file": d.config.Auth.RevokedFile}
	for name, dataset := range d.config.Datasets {
		public["datasets."+name+".steward_keys_file"] = dataset.StewardKeysFile
	}
	for _, key := range slices.Sorted(maps.Keys(public)) {
		if public[key] != "" {
			d.believed(key, public[key])
		}
	}
	if d.config.Control.ReceiptKeyFile == "" {
		d.warn("control.receipt_key_file", "openssl genpkey -algorithm ed25519 -out receipt.key, and name it",
			"is not set: answers carry no receipts, with which analysts could show what a lost ledger owes")
	} else if _, err := d.config.Control.Signer(); err != nil {
		d.failed("control.receipt_key_file", err, "make one with openssl genpkey -algorithm ed25519")
	}
	d.anchor()
}

// secret looks who else may read a file.
func (d *doctor) secret(key, path string) {
	info, err := os.Stat(path)
	if err != nil {
		d.fail(key, "let the user that runs noisegate read it", "%v", err)
		return
	}
	switch mode := info.Mode().Perm(); {
	case mode&0o027 != 0:
		d.fail(key, "chmod 600 "+path, "%s has mode %03o: others than its owner may read or change a secret", path, mode)
	case mode&0o040 != 0:
		d.warn(key, "chmod 600 "+path, "%s has mode %03o: its group may read a secret", path, mode)
	default:
		d.ok(key, "%s is its owner's alone (mode %03o)", path, mode)
	}
	d.directory(key, path)
}

// believed looks who may change a file that decides what is believed.
func (d *doctor) believed(key, path string) {
	info, err := os.Stat(path)
	if err != nil {
		d.fail(key, "let the user that runs noisegate read it", "%v", err)
		return
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		d.fail(key, "chmod go-w "+path, "%s has mode %03o: others than its owner may change whom the gateway believes", path, mode)
	} else {
		d.ok(key, "%s can be changed by its owner alone (mode %03o)", path, mode)
	}
	d.directory(key, path)
}

// directory fails where others may put another file in a file's place.
func (d *doctor) directory(key, path string) {
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
		d.fail(key, "chmod o-w "+dir, "everybody may replace files in %s", dir)
	}
}

// anchor looks whether an older ledger would be noticed.
func (d *doctor) anchor() {
	const key = "control.anchor"
	path := d.config.Control.Anchor
	if path == "" {
		d.warn(key, "name a file on a disk that backups of the control database do not restore",
			"there is none: a control database that is put back to an older state gives budget back, and nothing notices")
		return
	}
	was, err := journal.NewAnchor(path).Read()
	if err != nil {
		d.fail(key, "see \"Backups and recovery\" of the page /docs/operations before it is removed", "%v", err)
		return
	}
	beside, err := os.CreateTemp(filepath.Dir(path), ".noisegate-doctor-*")
	switch {
	case err != nil && d.config.Control.AnchorIsDefault() && len(was.Heads) == 0:
		d.warn(key, "name a file that the user that runs noisegate may write, on a disk that backups of the control database do not restore",
			"is not set, and %s cannot be written: a control database that is put back to an older state gives budget back, and nothing notices",
			path)
		return
	case err != nil:
		d.fail(key, "let the user that runs noisegate write there", "the anchor cannot be written: %v", err)
		return
	}
	if err := errors.Join(beside.Close(), os.Remove(beside.Name())); err != nil {
		d.fail(key, "look at the disk", "%v", err)
		return
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		d.warn(key, "if the gateway ran before, find out who removed it", "%s remembers nothing yet", path)
		return
	}
	d.ok(key, "%s remembers where %d chains of the ledger ended", path, len(was.Heads))
}

// certificates looks at what TLS is spoken with, and where it is not.
func (d *doctor) certificates() {
	web, err := d.config.HTTP.TLS()
	d.certificate("http", d.config.HTTP.Listen, web, err)
	if d.config.HTTP.Insecure {
		d.warn("http.insecure", "see that the proxy that ends TLS is the only one that reaches "+d.config.HTTP.Listen,
			"tokens and answers cross the network in clear text from the proxy on")
	}
	if d.config.Wire.Listen != "" {
		wire, err := d.config.Wire.TLS()
		d.certificate("wire", d.config.Wire.Listen, wire, err)
	}
	if d.config.Admin.Listen != "" && d.config.Admin.Insecure {
		d.warn("admin.insecure", "see that only those who run the gateway reach "+d.config.Admin.Listen,
			"whoever reaches it reads the metrics, without a token")
	}
	insecure := map[string]bool{"control.insecure": d.config.Control.Insecure}
	for name, dataset := range d.config.Datasets {
		insecure["datasets."+name+".insecure"] = dataset.Insecure
	}
	for _, key := range slices.Sorted(maps.Keys(insecure)) {
		if insecure[key] {
			d.warn(key, "use sslmode=verify-full", "whoever is on the way to the server may read and change what flows")
		}
	}
}

func (d *doctor) certificate(door, listen string, c *tls.Config, err error) {
	key := door + ".tls_cert_file"
	switch {
	case err != nil:
		d.failed(key, err, "name a certificate chain and its key, as PEM")
		return
	case c == nil:
		d.ok(door+".listen", "%s, in clear text", listen)
		return
	}
	leaf, err := x509.ParseCertificate(c.Certificates[0].Certificate[0])
	switch now := d.now(); {
	case err != nil:
		d.failed(key, err, "name a certificate chain and its key, as PEM")
	case now.Before(leaf.NotBefore):
		d.fail(key, "look at the clock, or wait", "the certificate is valid from %s on only", leaf.NotBefore.UTC().Format(time.DateTime))
	case now.After(leaf.NotAfter):
		d.fail(key, "renew it", "the certificate ended on %s", leaf.NotAfter.UTC().Format(time.DateOnly))
	case now.Add(certificates).After(leaf.NotAfter):
		d.warn(key, "renew it", "the certificate ends on %s", leaf.NotAfter.UTC().Format(time.DateOnly))
	default:
		d.ok(key, "the certificate ends on %s", leaf.NotAfter.UTC().Format(time.DateOnly))
	}
}

// machine looks at the limits of the process. They are the limits of the user who runs this: run it as the service's user.
func (d *doctor) machine() {
	var files, core syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil {
		if files.Cur < descriptors {
			d.warn("open files", fmt.Sprintf("LimitNOFILE=%d in the unit, or ulimit -n %d", 16*descriptors, 16*descriptors),
				"at most %d: half of them are for clients", files.Cur)
		} else {
			d.ok("open files", "at most %d", files.Cur)
		}
	}
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &core); err == nil && core.Cur > 0 {
		d.warn("core files", "LimitCORE=0 in the unit, or ulimit -c 0", "a crash may write sums of protected tables, before noise, to a file")
	} else if err == nil {
		d.ok("core files", "none are written")
	}
	fairness, err := d.config.Fairness()
	if err != nil {
		d.failed("limits", err, "")
		return
	}
	d.ok("limits.places", "%d requests that cost work at a time (limits.places %d, one connection of each dataset apart), %d of one analyst",
		fairness.Places, d.config.Limits.Places, fairness.PerAnalyst)
}

// keys looks whether tokens can be checked.
func (d *doctor) keys(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := d.config.Auth
	if err := auth.CheckRevoked(a.RevokedFile, auth.Keys(a.Keys)); err != nil {
		d.failed("auth.revoked_file", err, "write a line for each: subject NAME, jti ID, or kid NAME")
	}
	if a.MaxTokenLife == 0 {
		d.warn("auth.max_token_life", "say 24h, unless a service needs a token that lives longer",
			"is not set: a token that leaked is good until its own end, or until auth.revoked_file names it")
	} else {
		d.ok("auth.max_token_life", "tokens live for %s at most", a.MaxTokenLife)
	}
	if err := auth.Keys(a.Keys).Check(ctx); err != nil {
		d.failed("auth.keys", err, "see auth.keys of the page /docs/operations")
		return
	}
	if a.Keys.HS256File != "" {
		d.warn("auth.keys.hs256_file", "use auth.keys.jwks_url, or jwks_file, of who issues tokens",
			"whoever reads the secret makes any token: it is meant for development")
		return
	}
	d.ok("auth.keys", "the keys of %s can be read", a.Issuer)
	if a.Console.ClientID != "" {
		d.provider(ctx)
	}
}

// provider looks whether people can log in to the console at the issuer.
func (d *doctor) provider(ctx context.Context) {
	const key = "auth.console.client_id"
	a := d.config.Auth
	switch says, err := auth.CheckProvider(ctx, a.Issuer, a.Console.ClientID, a.Console.Scopes); {
	case err != nil:
		d.failed(key, err, "see that this machine reaches "+a.Issuer+"/.well-known/openid-configuration")
	case !says:
		d.warn(key, "see its documentation: without PKCE it would refuse to log anybody in, or do it less safely",
			"%s does not say whether it takes PKCE by S256", a.Issuer)
	default:
		d.ok(key, "people log in to the console at %s, as its client %s", a.Issuer, a.Console.ClientID)
	}
}
