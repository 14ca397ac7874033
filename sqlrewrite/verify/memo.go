package verify

import (
	"crypto/sha256"
	"encoding/binary"
	"math/big"
	"sync"

	"noisegate/catalog"
)

// Memo remembers what was proven: by the text, the arguments but for those that change (constant.go), the claim and the snapshot, hashed
// together. Refusals are not remembered. Its zero value is ready for use, by several at once.
type Memo struct {
	mu     sync.Mutex
	proven map[proof]struct{}
}

type proof struct {
	on  *catalog.Snapshot
	sum [sha256.Size]byte
}

// mostProofs bounds a memo; it starts anew when it is full.
const mostProofs = 10_000

// Statement is [Statement], remembered.
func (m *Memo) Statement(sql string, args []any, on *catalog.Snapshot, c Claim) error {
	return m.once(proof{on, sha256.Sum256(written(sql, args, c))}, func() error { return Statement(sql, args, on, c) })
}

// Public is [Public], remembered.
func (m *Memo) Public(sql string, on *catalog.Snapshot) error {
	return m.once(proof{on, sha256.Sum256([]byte(sql))}, func() error { return Public(sql, on) })
}

func (m *Memo) once(p proof, prove func() error) error {
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
func written(sql string, args []any, c Claim) []byte {
	b := make([]byte, 0, len(sql)+1024)
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	number := func(n int64) { b = binary.AppendVarint(b, n) }
	big := func(n *big.Int) {
		if n == nil {
			b = append(b, 0)
			return
		}
		b = append(b, 1, byte(n.Sign()+1))
		text(string(n.Bytes()))
	}
	text("statement")
	text(sql)
	number(int64(len(args)))
	for _, a := range args {
		switch a := a.(type) {
		case nil:
			b = append(b, 'n')
		case int64:
			b = append(b, 'i') // of any value
		case string:
			b = append(b, 's')
			text(a)
		case []string:
			b = append(b, 'a')
			number(int64(len(a)))
			for _, s := range a {
				text(s)
			}
		default:
			b = append(b, '?')
		}
	}
	number(int64(c.Keys))
	number(int64(c.Histogram))
	big(c.Groups)
	big(c.PairsPerRow)
	for _, list := range [2][]*bigInt{c.PerGroup, c.Spread} {
		number(int64(len(list)))
		for _, n := range list {
			big(n)
		}
	}
	number(int64(len(c.Norms)))
	for _, n := range c.Norms {
		number(int64(len(n.Columns)))
		for _, i := range n.Columns {
			number(int64(i))
		}
		big(n.L1)
		big(n.L2Squared)
	}
	number(int64(len(c.Pins)))
	for _, p := range c.Pins {
		text(p.Schema)
		text(p.Table)
		number(int64(p.OID))
		number(p.MostRows)
		number(int64(len(p.Columns)))
		for _, col := range p.Columns {
			text(col.Name)
			number(int64(col.AttNum))
			number(int64(col.TypeOID))
			number(int64(col.TypMod))
			number(col.MostEqual)
			if col.NotNull {
				b = append(b, 1)
			} else {
				b = append(b, 0)
			}
		}
		number(int64(len(p.Keys)))
		for _, k := range p.Keys {
			number(int64(len(k)))
			for _, name := range k {
				text(name)
			}
		}
	}
	return b
}

type bigInt = big.Int
