package naming

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]struct{ taken, valid bool }{
		"ana": {true, true}, "José Ñandú 李 ana@x.test": {true, true}, "а": {true, true}, strings.Repeat("a", 256): {true, true},
		" ana": {true, false}, "ana ": {true, false}, "ana\u00a0": {true, false}, " ": {true, false},
		"contractors™": {true, false}, "A\u0308rzte": {true, false}, "R＆D": {true, false}, "team❤\ufe0f": {true, false},
		"ana\u200b": {true, false}, "an\u00ada": {true, false}, "\u202eana": {true, false}, "an\u034fa": {true, false},
		"ana\u2028": {true, false}, "ana\u3164": {true, false},
		"": {}, "a\nb": {}, "a\x00b": {}, "ana\u0085": {}, "a\xffb": {}, strings.Repeat("a", 257): {},
	} {
		if Taken(name) != want.taken || Valid(name) != want.valid {
			t.Errorf("%q: taken %t, valid %t, want %+v", name, Taken(name), Valid(name), want)
		}
	}
}
