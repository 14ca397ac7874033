package mechanisms

import "testing"

// An unknown law is not shown as another.
func TestLawsAreToldApart(t *testing.T) {
	if !DiscreteGaussian.Gaussian() || DiscreteLaplace.Gaussian() || QuantileSelection.Gaussian() {
		t.Error("a variance is taken for a scale, or the other way round")
	}
	defer func() {
		if recover() == nil {
			t.Error("an unknown law was told")
		}
	}()
	Name("staircase").Gaussian()
}
