package budget

import (
	"reflect"
	"testing"
	"time"
)

// A limit loosens another one unless all that it says is as it was, less, or a further restriction: of each field that there is, also of
// one that comes later, one of two values loosens the other.
func TestLoosens(t *testing.T) {
	base := Limit{Form: Approx, Epsilon: 10, Rho: 10, Delta: 10, TotalDelta: 20, PerQuery: 5, PerQueryRho: 5,
		Tranche: Tranche{Every: time.Hour, Epsilon: 1, Rho: 1}, Rate: Rate{Per: time.Minute, Epsilon: 1, Rho: 1}}
	if base.Loosens(base) {
		t.Error("a limit loosens itself")
	}
	for i := range reflect.TypeFor[Limit]().NumField() {
		changed, field := base, reflect.TypeFor[Limit]().Field(i)
		v := reflect.ValueOf(&changed).Elem().Field(i)
		switch v.Kind() {
		case reflect.String:
			v.SetString("zcdp")
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Int64:
			v.SetInt(v.Int() + 1)
		case reflect.Struct:
			v.Field(0).SetInt(v.Field(0).Int() + 1)
		default:
			t.Fatalf("%s: no other value of a %v is known here", field.Name, field.Type)
		}
		if !changed.Loosens(base) && !base.Loosens(changed) {
			t.Errorf("%s: neither of %+v and %+v loosens the other", field.Name, base, changed)
		}
	}
	for name, c := range map[string]struct {
		change func(*Limit)
		there  bool // it loosens
		back   bool // undoing it does
	}{
		"less":                    {func(l *Limit) { l.Epsilon, l.Rho = 9, 9 }, false, true},
		"a higher cap on a query": {func(l *Limit) { l.PerQuery = 6 }, true, false},
		"no cap on a query":       {func(l *Limit) { l.PerQuery, l.PerQueryRho = 0, 0 }, true, false},
		"replays only":            {func(l *Limit) { l.ReplayOnly = true }, false, true},
		"no tranche":              {func(l *Limit) { l.Tranche = Tranche{} }, true, false},
		"another tranche":         {func(l *Limit) { l.Tranche.Epsilon = 0 }, true, true},
		"no rate":                 {func(l *Limit) { l.Rate = Rate{} }, true, false},
		"another form":            {func(l *Limit) { l.Form, l.Epsilon = Pure, 1 }, true, true},
		"less, and no rate":       {func(l *Limit) { l.Epsilon, l.Rate = 1, Rate{} }, true, true},
	} {
		changed := base
		c.change(&changed)
		if there, back := changed.Loosens(base), base.Loosens(changed); there != c.there || back != c.back {
			t.Errorf("%s: %t, and back %t", name, there, back)
		}
	}
}
