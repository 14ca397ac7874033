package fit_test

import "testing"

// known are names of models, by their earlier names.
type known map[[32]byte][32]byte

// name gives a model's name. It neither separates models that had one earlier name nor joins those that had two.
func (k known) name(t *testing.T, p interface {
	Fingerprint() [32]byte
	EarlierFingerprint() [32]byte
}) [32]byte {
	t.Helper()
	earlier, now := p.EarlierFingerprint(), p.Fingerprint()
	for other, name := range k {
		if (other == earlier) != (name == now) {
			t.Errorf("two models had one name: %t; now: %t", other == earlier, name == now)
		}
	}
	k[earlier] = now
	return now
}
