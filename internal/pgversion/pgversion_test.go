package pgversion

import (
	"strings"
	"testing"
)

func TestMajor(t *testing.T) {
	for text, want := range map[string]int{"15.18 (Debian 15.18-0+deb12u1)": 15, "18.6": 18, "19devel": 19, "18beta1": 18, "9.6.24": 9,
		"14": 14} {
		if got, err := Major(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "devel", "PostgreSQL 15"} {
		if got, err := Major(text); err == nil {
			t.Errorf("%q: got %d, want an error", text, got)
		}
	}
}

// Servers that are older than the oldest tested version, and newer ones than the newest, are refused with what to do;
// the latter can be allowed.
func TestRefuse(t *testing.T) {
	for _, c := range []struct {
		policy  Policy
		version string
		why     string // "" when accepted
	}{
		{OnlyTested, "13.21", "too old"},
		{OnlyTested, "14.0", ""},
		{"", "18.6", ""},
		{OnlyTested, "19devel", `"versions: allow-untested"`},
		{"", "20.1", `"versions: allow-untested"`},
		{AllowUntested, "20.1", ""},
		{AllowUntested, "13.21", "too old"},
		{AllowUntested, "", "which version"},
	} {
		err := c.policy.Refuse(c.version)
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%q of %q: got %v, want %q", c.policy, c.version, err, c.why)
		}
	}
}

func TestParse(t *testing.T) {
	for _, text := range []string{"tested", "allow-untested"} {
		if p, err := Parse(text); err != nil || string(p) != text {
			t.Errorf("%q: got %q, %v", text, p, err)
		}
	}
	if _, err := Parse("any"); err == nil || !strings.Contains(err.Error(), "allow-untested") {
		t.Errorf("got %v, want an error that names what can stand there", err)
	}
}
