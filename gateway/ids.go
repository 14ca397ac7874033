package gateway

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"

	"noisegate.example/budget"
)

// crockford is the alphabet of ULIDs: no I, L, O, U.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewULID makes an identifier of 26 characters that sorts by its time: 48 bits of milliseconds, then 80 random bits
// (github.com/ulid/spec), so that nobody guesses one. The process ends if the system gives no randomness.
func NewULID(now time.Time) budget.ReservationID {
	// 130 bits of base 32 hold 128: the first character carries only three bits, so two zero bits go before.
	var id [17]byte
	ms := uint64(now.UnixMilli())
	_, _ = rand.Read(id[6:16]) // crypto/rand.Read never returns an error
	var head [8]byte
	binary.BigEndian.PutUint64(head[:], ms<<16)
	copy(id[:6], head[:6])
	// Shift everything right by two bits.
	for i := len(id) - 1; i > 0; i-- {
		id[i] = id[i]>>2 | id[i-1]<<6
	}
	id[0] >>= 2
	return budget.ReservationID(base32.NewEncoding(crockford).WithPadding(base32.NoPadding).EncodeToString(id[:])[:26])
}
