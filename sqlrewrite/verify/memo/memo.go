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

// Memo remembers what was proven: by the text, the arguments whose value the proof needs, the claim and the snapshot, hashed together,
// with what it takes. Refusals are not remembered. What is remembered tells in its time what was asked: each analyst has a memo of their
// own. Its zero value is ready for use, by several at once; a nil one remembers nothing.
type Memo struct {
	mu     sync.Mutex
	proven map[proof]verify.Work // what a statement takes; of other texts nothing
	forms  map[proof]form        // by all but texts of arguments
}

type proof struct {
	on  *catalog.Snapshot
	sum [sha256.Size]byte
}

// form is what is known of statements that differ in texts of arguments alone.
type form struct {
	asked  int
	needed []bool // of which arguments proofs need the text; nil: that is not known yet
}

const (
	// mostProofs bounds a memo; it starts anew when it is full.
	mostProofs = 1_000
	// mostGeneral is the longest text, in bytes, that is proven for any texts of its arguments, which takes several proofs.
	mostGeneral = 16 << 10
	// generalAfter is after how many questions of a form: planning one question asks for several, while it lowers caps.
	generalAfter = 8
)

// Statement is [verify.Statement], remembered. What is asked often with other texts is proven for any texts, but for those that the
// proof needs.
func (m *Memo) Statement(sql string, args []any, on *catalog.Snapshot, c verify.Claim) error {
	w, err := m.Work(sql, args, on, c)
	if err == nil && c.Within(w) != nil { // of any texts it may take longer than of these
		w, err = m.WorkOf(sql, args, on, c)
	}
	if err != nil {
		return err
	}
	return c.Within(w)
}

// Work proves a statement as [Memo.Statement] does, and says what it takes at most. What was asked before decides whether that is of these
// arguments or of any: what depends on it takes [Memo.WorkOf] where this is too much.
func (m *Memo) Work(sql string, args []any, on *catalog.Snapshot, c verify.Claim) (verify.Work, error) {
	if m == nil || len(sql) > mostGeneral {
		return m.WorkOf(sql, args, on, c)
	}
	key := func(args []any) proof { return proof{on, sum(sql, args, c)} }
	general := func(args []any) (verify.Work, error) { // a separate count: what was asked before must not decide how much a text may take
		return m.once(key(args), func() (verify.Work, error) { return prove(sql, args, on, c.Counted(nil)) })
	}
	ofForm := key(without(args, nil))
	m.mu.Lock()
	w, known := m.proven[key(args)]
	f := m.forms[ofForm]
	m.mu.Unlock()
	if known {
		return w, nil
	}
	if f.needed != nil {
		if w, err := general(without(args, f.needed)); err == nil {
			return w, nil
		}
	}
	exact, err := m.WorkOf(sql, args, on, c)
	if err != nil || f.needed != nil {
		return exact, err
	}
	if f.asked++; f.asked > generalAfter { // without a cap, what all rows of a unit take is what each of them takes: a cap is needed
		f.needed = needs(args, func(args []any) bool {
			w, err := general(args)
			return err == nil && same(w.RowWork, exact.RowWork) && same(w.UnitWork, exact.UnitWork)
		})
	}
	m.keep(ofForm, f)
	return exact, nil
}

// same are two figures, of which nil is none.
func same(a, b *big.Int) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Cmp(b) == 0
}

// WorkOf is [Memo.Work] of just these arguments, whatever was asked before.
func (m *Memo) WorkOf(sql string, args []any, on *catalog.Snapshot, c verify.Claim) (verify.Work, error) {
	return m.once(proof{on, sum(sql, args, c)}, func() (verify.Work, error) { return prove(sql, args, on, c) })
}

func prove(sql string, args []any, on *catalog.Snapshot, c verify.Claim) (verify.Work, error) {
	got, err := verify.Prove(sql, args, on, c)
	return got.Work, err
}

// mostTried is without how many texts a proof is tried.
const mostTried = 16

// needs tries without which texts of arguments a proof succeeds, one after the other.
func needs(args []any, proven func([]any) bool) []bool {
	needed := make([]bool, len(args))
	if proven(without(args, needed)) {
		return needed
	}
	for i := range args {
		needed[i] = true
	}
	tried := 0
	for i, a := range args {
		if _, text := a.(string); text && tried < mostTried {
			tried++
			needed[i] = false
			needed[i] = !proven(without(args, needed))
		}
	}
	return needed
}

// without has any text in place of each that is not needed.
func without(args []any, needed []bool) []any {
	all := slices.Clone(args)
	for i, a := range args {
		if _, text := a.(string); text && (needed == nil || !needed[i]) {
			all[i] = verify.Any{}
		}
	}
	return all
}

// keep remembers what is known of a form.
func (m *Memo) keep(p proof, f form) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.forms == nil || len(m.forms) >= mostProofs {
		m.forms = make(map[proof]form)
	}
	m.forms[p] = f
}

// Public is [verify.Public], remembered.
func (m *Memo) Public(sql string, on *catalog.Snapshot) error {
	_, err := m.once(proof{on, sha256.Sum256([]byte("public " + sql))},
		func() (verify.Work, error) { return verify.Work{}, verify.Public(sql, on) })
	return err
}

func (m *Memo) once(p proof, prove func() (verify.Work, error)) (verify.Work, error) {
	if m == nil {
		return prove()
	}
	m.mu.Lock()
	w, known := m.proven[p]
	m.mu.Unlock()
	if known {
		return w, nil
	}
	w, err := prove()
	if err != nil {
		return verify.Work{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proven == nil || len(m.proven) >= mostProofs {
		m.proven = make(map[proof]verify.Work)
	}
	m.proven[p] = w
	return w, nil
}

// record is what is hashed of a proof.
type record []byte

func (b record) texts(all ...string) record {
	for _, s := range all {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return b
}

func (b record) numbers(all ...int) record {
	for _, n := range all {
		b = binary.AppendVarint(b, int64(n))
	}
	return b
}

func (b record) bigs(all ...*big.Int) record {
	for _, n := range all {
		if n == nil {
			b = append(b, 'n')
			continue
		}
		b = append(b, '0'+byte(1+n.Sign())).texts(string(n.Bytes()))
	}
	return b
}

// sum hashes all that a proof depends on, each part with its length, so that no two hash the same bytes.
func sum(sql string, args []any, c verify.Claim) [sha256.Size]byte {
	b := make(record, 0, 4<<10) // most fit, and so need no memory of the heap
	b = b.texts("statement", sql)
	b = b.numbers(len(args))
	for _, a := range args {
		switch a := a.(type) {
		case nil:
			b = append(b, 'n')
		case int64:
			b = append(b, 'i') // of any value
		case verify.Any:
			b = append(b, '*') // of any text
		case string:
			b = append(b, 's')
			b = b.texts(a)
		case []string:
			b = append(b, 'a')
			b = b.numbers(len(a))
			b = b.texts(a...)
		default:
			b = append(b, '?')
		}
	}
	b = b.numbers(c.Keys, int(c.Histogram), len(c.PerGroup), len(c.Spread), len(c.Norms), len(c.Pins), len(c.Joint), len(c.Zones))
	b = b.texts(c.Zones...).bigs(c.Groups, c.PairsPerRow)
	b = b.bigs(c.PerGroup...)
	b = b.bigs(c.Spread...)
	for _, n := range c.Norms {
		b = b.numbers(len(n.Columns))
		b = b.numbers(n.Columns...)
		b = b.bigs(n.L1, n.L2Squared)
	}
	for _, j := range c.Joint {
		b = b.numbers(len(j.Columns), len(j.Weights))
		b = b.numbers(j.Columns...)
		for _, r := range append(slices.Clone(j.Weights), j.L2Squared) {
			if r == nil {
				b = append(b, 'n')
				continue
			}
			b = b.texts(r.RatString())
		}
	}
	for _, p := range c.Pins {
		b = b.texts(p.Schema, p.Table)
		b = b.numbers(int(p.OID), int(p.MostRows), len(p.Columns), len(p.Keys), len(p.Checks))
		for _, c := range p.Checks {
			b = b.texts(c.Column)
			b = b.numbers(int(c.Lo), int(c.Hi))
		}
		for _, col := range p.Columns {
			b = b.texts(col.Name)
			b = b.numbers(int(col.AttNum), int(col.TypeOID), int(col.TypMod), int(col.MostEqual))
			b = strconv.AppendBool(b, col.NotNull)
		}
		for _, k := range p.Keys {
			b = b.numbers(len(k))
			b = b.texts(k...)
		}
	}
	return sha256.Sum256(b)
}
