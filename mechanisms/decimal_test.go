package mechanisms

import (
	"errors"
	"math/big"
	"strings"
	"testing"
)

func TestParseDecimal(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "1": "1", "0.5": "1/2", "0.1": "1/10", "1e-9": "1/1000000000", "1E3": "1000", "2.50e+1": "25",
		"0.000": "0", "123456789012345678901234567890.0123456789": "1234567890123456789012345678900123456789/10000000000",
	} {
		got, err := ParseDecimal(text)
		if err != nil || got.Cmp(rational(t, want)) != 0 {
			t.Errorf("%q = %v, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", " ", "abc", "NaN", "nan", "inf", "Infinity", "-1", "+1", "1.", ".5", "01", "00.5", "1e", "1e+", "1e--1", "1e+-1", "1.2.3", "1,5",
		"0x1", "1_000", "1e1.5", " 1", "1 ", "1e", "٣", "½", "1/2", "1\x00",
	} {
		if got, err := ParseDecimal(text); !errors.Is(err, ErrNotDecimal) {
			t.Errorf("%q = %v, %v; want ErrNotDecimal", text, got, err)
		}
	}
	for _, text := range []string{"1e308", "1e31", "1e-31", "1e99999999999999999999", strings.Repeat("1", 41),
		"0." + strings.Repeat("0", 40)} {
		if got, err := ParseDecimal(text); !errors.Is(err, ErrTooLong) {
			t.Errorf("%q = %v, %v; want ErrTooLong", text, got, err)
		}
	}
}

// TestParseUnitsRoundsDown: what is asked for is never rounded up into more.
func TestParseUnitsRoundsDown(t *testing.T) {
	for _, c := range []struct {
		text string
		want PicoEpsilon
		err  error
	}{
		{"0.5", EpsilonUnit / 2, nil},
		{"0", 0, nil},
		{"1e-12", 1, nil},
		{"1.9999999999999999e-12", 1, nil},
		{"0.3333333333333333333", 333333333333, nil},
		{"9e-13", 0, ErrTooSmall},
		{"1000000", MaxEpsilon, nil},
		{"1000000.0000000000001", MaxEpsilon, nil},
		{"1000000.000000000001", 0, ErrTooLarge},
		{"1e30", 0, ErrTooLarge},
	} {
		if got, err := ParseEpsilon(c.text); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("ε %s = %d, %v; want %d, %v", c.text, got, err, c.want, c.err)
		}
	}
	if got, err := ParseDelta("1e-9"); got != DeltaUnit/1_000_000_000 || err != nil {
		t.Errorf("δ 1e-9 = %d, %v", got, err)
	}
	if _, err := ParseDelta("1"); !errors.Is(err, ErrTooLarge) {
		t.Errorf("δ 1: %v, want ErrTooLarge", err)
	}
	if got, err := ParseRho("0.05"); got != RhoUnit/20 || err != nil {
		t.Errorf("ρ 0.05 = %d, %v", got, err)
	}
}

func TestAmountsPrintExactly(t *testing.T) {
	for amount, want := range map[PicoEpsilon]string{
		0: "0", 1: "1e-12", 12: "1.2e-11", EpsilonUnit: "1", EpsilonUnit / 2: "0.5", 1_000_000: "0.000001", 999_999: "9.99999e-7",
		3*EpsilonUnit + 1: "3.000000000001", 100 * EpsilonUnit: "100", MaxEpsilon: "1000000", -EpsilonUnit / 4: "-0.25",
		1<<63 - 1: "9223372.036854775807", -1 << 63: "-9223372.036854775808",
	} {
		if got := amount.String(); got != want {
			t.Errorf("%d prints as %s, want %s", int64(amount), got, want)
		}
	}
	if got := (DeltaUnit / 1_000_000_000).String(); got != "1e-9" {
		t.Errorf("10⁻⁹ prints as %s", got)
	}
}

// FuzzParseDecimal: what is accepted is an unsigned number that math/big reads the same way; what amounts print is read back.
func FuzzParseDecimal(f *testing.F) {
	for _, seed := range []string{"0.5", "1e-9", "-1", "NaN", "1e308", "1..2", "0x1p-2", "00", "1_0", strings.Repeat("9", 41)} {
		f.Add(seed, int64(12345))
	}
	f.Fuzz(func(t *testing.T, text string, amount int64) {
		if got, err := ParseDecimal(text); err == nil {
			want, ok := new(big.Rat).SetString(text)
			if !ok || want.Cmp(got) != 0 || got.Sign() < 0 || strings.ContainsAny(text, "+-_/xXpP") && !strings.ContainsAny(text, "eE") {
				t.Errorf("%q was read as %s", text, got)
			}
		}
		if e := PicoEpsilon(amount); e >= 0 && e <= MaxEpsilon {
			if back, err := ParseEpsilon(e.String()); err != nil || back != e {
				t.Errorf("%d prints as %s and reads as %d, %v", amount, e, back, err)
			}
		}
	})
}
