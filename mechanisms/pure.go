package mechanisms

import "errors"

var errPure = errors.New("mechanisms: ε and δ of a release are not negative, and δ is below 1")

// PureLoss is the loss of any release that is (ε, δ)-DP: outside an event of probability δ it is ε-DP (Kairouz, Oh, Viswanath 2015),
// hence ε·tanh(ε/2)-zCDP. It returns an error if a parameter is out of its range.
func PureLoss(epsilon PicoEpsilon, delta AttoDelta) (Loss, error) {
	if epsilon < 0 || delta < 0 || delta >= DeltaUnit {
		return Loss{}, errPure
	}
	return Loss{Epsilon: epsilon, Rho: rhoOfPure(epsilon.Rat()), Delta: delta}, nil
}
