package config

import (
	"crypto/tls"
	"fmt"
	"os"
	"time"

	"noisegate.example/budget/journal"
	"noisegate.example/gateway"
)

// An open charge that is older than the longest query can run belongs to a gateway that died.
const abandonedGrace = 2 * time.Minute

// Abandoned is the age from which an open charge cannot belong to a running query.
func (c *Config) Abandoned() time.Duration {
	longest := time.Duration(0)
	for _, d := range c.Datasets {
		longest = max(longest, d.StatementTimeout)
	}
	return longest + abandonedGrace
}

// Fairness gives out fewer places than the dataset with the fewest connections has. A question with a place has a connection, and does not
// wait for one that another analyst holds, which becomes free when work ends and not at a boundary. One connection is left for the
// gateway's checks.
func (c *Config) Fairness() (gateway.Fairness, error) {
	f := gateway.Fairness(c.Limits)
	for _, d := range c.Datasets {
		f.Places = min(f.Places, max(d.Connections-1, 1))
	}
	f, err := f.Complete()
	return f, Wrong(err)
}

// TLS reads certificate and key; nil for plain HTTP.
func (c HTTP) TLS() (*tls.Config, error) {
	if c.TLSCertFile == "" {
		return nil, nil
	}
	certificate, err := tls.LoadX509KeyPair(c.TLSCertFile, c.TLSKeyFile)
	if err != nil {
		return nil, Wrong(fmt.Errorf("http.tls_cert_file, http.tls_key_file: %w", err))
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}, nil
}

// TLS reads certificate and key; nil for clear text, which is taken from this machine only.
func (c Wire) TLS() (*tls.Config, error) {
	if c.TLSCertFile == "" {
		return nil, nil
	}
	certificate, err := tls.LoadX509KeyPair(c.TLSCertFile, c.TLSKeyFile)
	if err != nil {
		return nil, Wrong(fmt.Errorf("wire.tls_cert_file, wire.tls_key_file: %w", err))
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, nil
}

// Stewards reads the keys of those who may raise a dataset's caps, and approve what takes two stewards; nil when none are configured.
func (c *Config) Stewards(dataset string) (keys journal.StewardKeys, err error) {
	file := c.Datasets[dataset].StewardKeysFile
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err == nil {
		keys, err = journal.ParseStewardKeys(text)
	}
	if err != nil {
		return nil, Wrong(fmt.Errorf("%s: %w", datasetKey(dataset, "steward_keys_file"), err))
	}
	return keys, nil
}

// Signer reads the key of receipts; nil when none is configured.
func (c Control) Signer() (*journal.Signer, error) {
	if c.ReceiptKeyFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.ReceiptKeyFile)
	if err != nil {
		return nil, Wrong(fmt.Errorf("control.receipt_key_file: %w", err))
	}
	signer, err := journal.NewSigner(text)
	return signer, Wrong(err)
}
