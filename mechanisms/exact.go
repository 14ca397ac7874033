package mechanisms

import (
	"errors"
	"fmt"
	"log/slog"
	"math/big"
)

// Exact is a true aggregate of protected data, sealed: an integer that cannot be printed, logged,
// compared or encoded, and that only this package opens, when it adds noise or selects.
//
// The zero Exact is the value 0 (a group without rows).
type Exact struct {
	v *exactValue
}

// exactValue keeps the integer behind a pointer to an unexported type, so that neither reflection-based
// printers that stop at pointers nor an accidental == reveals it.
type exactValue struct{ n big.Int }

// sealed is what every printer and encoder shows instead of the value.
const sealed = "[sealed]"

// Seal takes over a true value. The caller must drop its own copy.
func Seal(n *big.Int) Exact {
	e := Exact{v: new(exactValue)}
	e.v.n.Set(n)
	return e
}

// SealInt64 is [Seal] for a machine integer.
func SealInt64(n int64) Exact {
	e := Exact{v: new(exactValue)}
	e.v.n.SetInt64(n)
	return e
}

// errNotInteger carries nothing of the text: the text is data.
var errNotInteger = errors.New("mechanisms: a sealed value is not a decimal integer")

// SealText seals the decimal integer that PostgreSQL sent in text form, without the caller ever
// holding the number. It returns an error, which says nothing about the text, if it is not an integer.
func SealText(text []byte) (Exact, error) {
	e := Exact{v: new(exactValue)}
	if _, ok := e.v.n.SetString(string(text), 10); !ok {
		return Exact{}, errNotInteger
	}
	return e, nil
}

// open gives the value to the mechanisms of this package.
func (e Exact) open() *big.Int {
	if e.v == nil {
		return new(big.Int)
	}
	return &e.v.n
}

// Format implements [fmt.Formatter] for every verb, %#v and %p included.
func (Exact) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(sealed)) }

// String implements [fmt.Stringer].
func (Exact) String() string { return sealed }

// GoString implements [fmt.GoStringer].
func (Exact) GoString() string { return sealed }

// LogValue implements [slog.LogValuer].
func (Exact) LogValue() slog.Value { return slog.StringValue(sealed) }

// MarshalJSON refuses: a true value never leaves the process.
func (Exact) MarshalJSON() ([]byte, error) { return nil, errSealed }

// MarshalText refuses: a true value never leaves the process.
func (Exact) MarshalText() ([]byte, error) { return nil, errSealed }

// MarshalBinary refuses (gob and friends): a true value never leaves the process.
func (Exact) MarshalBinary() ([]byte, error) { return nil, errSealed }

var errSealed = errors.New("mechanisms: a sealed value cannot be encoded")
