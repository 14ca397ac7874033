// Package memo remembers what package verify has proven. It does not know the rules of proofs.
package memo

import (
	"crypto/sha256"
	"encoding/binary"
	"math/big"
	"slices"
	"strconv"
	"sync"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/verify"
)

// Memo remembers what was proven: by the text, the arguments but for those that change (verify/constant.go), the claim and the snapshot, hashed
// together. Refusals are not remembered. What is remembered tells in its time what was asked: each analyst has a memo of their own. Its zero
// value is ready for use, by several at once; a nil one remembers nothing.
type Memo struct {
	mu     sync.Mutex
	proven map[proof]struct{}
}

type proof struct {
	on  *catalog.Snapshot
	sum [sha256.Size]byte
}

// mostProofs bounds a memo; it starts anew when it is full.
const mostProofs = 1_000

// Statement is [verify.Statement], remembered.
func (m *Memo) Statement(sql string, args []any, on *catalog.Snapshot, c verify.Claim) error {
	return m.once(proof{on, sha256.Sum256(written(sql, args, c))}, func() error { return verify.Statement(sql, args, on, c) })
}

// Public is [verify.Public], remembered.
func (m *Memo) Public(sql string, on *catalog.Snapshot) error {
	return m.once(proof{on, sha256.Sum256([]byte("public " + sql))}, func() error { return verify.Public(sql, on) })
}

func (m *Memo) once(p proof, prove func() error) error {
	if m == nil {
		return prove()
	}
	m.mu.Lock()
	_, known := m.proven[p]
	m.mu.Unlock()
	if known {
		return nil
	}
	if err := prove(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proven == nil || len(m.proven) >= mostProofs {
		m.proven = make(map[proof]struct{})
	}
	m.proven[p] = struct{}{}
	return nil
}

// written is all that a proof depends on, each part with its length, so that no two are written alike.
func written(sql string, args []any, c verify.Claim) []byte {
	b := make([]byte, 0, len(sql)+1024)
	texts := func(all ...string) {
		for _, s := range all {
			b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
		}
	}
	numbers := func(all ...int) {
		for _, n := range all {
			b = binary.AppendVarint(b, int64(n))
		}
	}
	bigs := func(all ...*big.Int) {
		for _, n := range all {
			if n == nil {
				b = append(b, 'n')
				continue
			}
			b = append(b, '0'+byte(1+n.Sign()))
			texts(string(n.Bytes()))
		}
	}
	texts("statement", sql)
	numbers(len(args))
	for _, a := range args {
		switch a := a.(type) {
		case nil:
			b = append(b, 'n')
		case int64:
			b = append(b, 'i') // of any value
		case string:
			b = append(b, 's')
			texts(a)
		case []string:
			b = append(b, 'a')
			numbers(len(a))
			texts(a...)
		default:
			b = append(b, '?')
		}
	}
	numbers(c.Keys, int(c.Histogram), len(c.PerGroup), len(c.Spread), len(c.Norms), len(c.Pins), len(c.Joint))
	bigs(c.Groups, c.PairsPerRow)
	bigs(c.PerGroup...)
	bigs(c.Spread...)
	for _, n := range c.Norms {
		numbers(len(n.Columns))
		numbers(n.Columns...)
		bigs(n.L1, n.L2Squared)
	}
	for _, j := range c.Joint {
		numbers(len(j.Columns), len(j.Weights))
		numbers(j.Columns...)
		for _, r := range append(slices.Clone(j.Weights), j.L2Squared) {
			if r == nil {
				b = append(b, 'n')
				continue
			}
			texts(r.RatString())
		}
	}
	for _, p := range c.Pins {
		texts(p.Schema, p.Table)
		numbers(int(p.OID), int(p.MostRows), len(p.Columns), len(p.Keys), len(p.Checks))
		for _, c := range p.Checks {
			texts(c.Column)
			numbers(int(c.Lo), int(c.Hi))
		}
		for _, col := range p.Columns {
			texts(col.Name)
			numbers(int(col.AttNum), int(col.TypeOID), int(col.TypMod), int(col.MostEqual))
			b = strconv.AppendBool(b, col.NotNull)
		}
		for _, k := range p.Keys {
			numbers(len(k))
			texts(k...)
		}
	}
	return b
}
