package collect

import (
	"crypto/ed25519"
	"errors"
	"slices"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/budget/journal"
	"noisegate.example/internal/fault"
)

// keys are a steward's, the same in each run.
func keys(t testing.TB, seed string) (ed25519.PrivateKey, string) {
	t.Helper()
	private := ed25519.NewKeyFromSeed([]byte((seed + strings.Repeat("-", 32))[:32]))
	text, err := journal.PublicKeyText(private.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	return private, string(text)
}

func definition(t testing.TB) api.CollectionDefinition {
	t.Helper()
	_, public := keys(t, "steward")
	return api.CollectionDefinition{Kind: "choice", Domain: []string{"walk", "bus", "car"}, Mechanism: "auto", Epsilon: "1",
		EnrolmentKey: public}
}

// TestDefinitionsAreChecked: each member that cannot be meant is named, and what is absent has its default.
func TestDefinitionsAreChecked(t *testing.T) {
	good, err := newQuestion("commute", definition(t))
	if err != nil || good.Mechanism != "krr" || good.Rounds != 1 {
		t.Fatalf("%+v, %v", good, err)
	}
	many := func(n int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = strings.Repeat("x", i%200+1) + strings.Repeat("y", i/200)
		}
		return list
	}
	for name, c := range map[string]struct {
		change func(*api.CollectionDefinition)
		field  string
	}{
		"no kind":          {func(d *api.CollectionDefinition) { d.Kind = "" }, "kind"},
		"one value":        {func(d *api.CollectionDefinition) { d.Domain = d.Domain[:1] }, "domain"},
		"no value":         {func(d *api.CollectionDefinition) { d.Domain = nil }, "domain"},
		"a value twice":    {func(d *api.CollectionDefinition) { d.Domain[2] = "walk" }, "domain"},
		"an empty value":   {func(d *api.CollectionDefinition) { d.Domain[2] = "" }, "domain"},
		"a line break":     {func(d *api.CollectionDefinition) { d.Domain[2] = "a\nb" }, "domain"},
		"a long value":     {func(d *api.CollectionDefinition) { d.Domain[2] = strings.Repeat("x", 257) }, "domain"},
		"too many":         {func(d *api.CollectionDefinition) { d.Domain = many(10_001) }, "domain"},
		"too many bits":    {func(d *api.CollectionDefinition) { d.Domain, d.Mechanism = many(1001), "oue" }, "domain"},
		"no ε":             {func(d *api.CollectionDefinition) { d.Epsilon = "" }, "epsilon"},
		"ε of 0":           {func(d *api.CollectionDefinition) { d.Epsilon = "0" }, "epsilon"},
		"ε of 100":         {func(d *api.CollectionDefinition) { d.Epsilon = "100" }, "epsilon"},
		"no mechanism":     {func(d *api.CollectionDefinition) { d.Mechanism = "" }, "mechanism"},
		"that of a number": {func(d *api.CollectionDefinition) { d.Mechanism = "duchi" }, "mechanism"},
		"no rounds":        {func(d *api.CollectionDefinition) { d.Rounds = new(int64(0)) }, "rounds"},
		"too many rounds":  {func(d *api.CollectionDefinition) { d.Rounds = new(int64(1001)) }, "rounds"},
		"no key":           {func(d *api.CollectionDefinition) { d.EnrolmentKey = "" }, "enrolment_key"},
		"a range":          {func(d *api.CollectionDefinition) { d.Low = "1" }, "low and high"},
		"no range":         {func(d *api.CollectionDefinition) { d.Kind, d.Domain = "number", nil }, "low and high"},
		"an empty range": {func(d *api.CollectionDefinition) {
			d.Kind, d.Domain, d.Low, d.High = "number", nil, "3", "3"
		}, "low and high"},
		"a number's domain": {func(d *api.CollectionDefinition) { d.Kind, d.Low, d.High = "number", "0", "1" }, "low and high"},
		"a huge exponent": {func(d *api.CollectionDefinition) {
			d.Kind, d.Domain, d.Low, d.High = "number", nil, "0", "1e999999999"
		}, "low and high"},
	} {
		d := definition(t)
		c.change(&d)
		_, err := newQuestion("commute", d)
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != fault.CodeCollectDefinition || f.Details[0].Value != c.field {
			t.Errorf("%s: %v, want a refusal of %s", name, err, c.field)
		}
	}
	for _, name := range []string{"", "Commute", "1", "a/b", strings.Repeat("a", 64)} {
		if _, err := newQuestion(name, definition(t)); fault.CodeOf(err) != fault.CodeCollectDefinition {
			t.Errorf("the name %q: %v", name, err)
		}
	}
	d := definition(t)
	d.Kind, d.Domain, d.Low, d.High, d.Mechanism = "number", nil, "-1.5", "2e3", "auto"
	if q, err := newQuestion("hours", d); err != nil || q.Mechanism != "duchi" {
		t.Errorf("%+v, %v", q, err)
	}
}

// TestTokensAreOfOneDevice: a token is good for its device, its collection and its key, and for nothing else.
func TestTokensAreOfOneDevice(t *testing.T) {
	private, _ := keys(t, "steward")
	other, _ := keys(t, "other")
	public := private.Public().(ed25519.PublicKey)
	good := Enrolment{"commute", "phone-1"}
	token := good.Token(private)
	if !good.signedBy(public, token) {
		t.Fatal("the token is not good")
	}
	for name, c := range map[string]struct {
		e     Enrolment
		token string
	}{
		"another device":     {Enrolment{"commute", "phone-2"}, token},
		"another collection": {Enrolment{"commute2", "phone-1"}, token},
		"another key":        {good, good.Token(other)},
		"no token":           {good, ""},
		"half a token":       {good, token[:40]},
		"more after it":      {good, token + "\n"},
		"no base64":          {good, strings.Repeat("!", 88)},
		"no device":          {Enrolment{"commute", ""}, Enrolment{"commute", ""}.Token(private)},
		"a line break":       {Enrolment{"commute", "a\nb"}, Enrolment{"commute", "a\nb"}.Token(private)},
		"a long name":        {Enrolment{"commute", strings.Repeat("a", 129)}, Enrolment{"commute", strings.Repeat("a", 129)}.Token(private)},
	} {
		if c.e.signedBy(public, c.token) {
			t.Errorf("%s is accepted", name)
		}
	}
	if good.digest() == (Enrolment{"commute", "phone-2"}).digest() || good.digest() == (Enrolment{"commute2", "phone-1"}).digest() {
		t.Error("two devices have one digest")
	}
}

func TestBatchesAreReadToTheLetter(t *testing.T) {
	lines, err := parse([]byte("\n" + `{"device":"a","token":"t","report":[1,2]}` + "\r\n\n " +
		`{"round":3,"report":[],"token":"","device":"b"}`))
	if err != nil || len(lines) != 2 || lines[0].number != 2 || lines[1].number != 4 || lines[0].Round != 1 || lines[1].Round != 3 ||
		!slices.Equal(lines[0].Report, []int64{1, 2}) || lines[1].Report == nil {
		t.Errorf("%+v, %v", lines, err)
	}
	for name, text := range map[string]string{
		"nothing": "", "blank": "\n \n", "text": "hello", "list": "[]", "null": "null", "two": "{}{}", "twice": `{"device":"a","device":"b"}`,
		"a value": `{"device":"a","value":"walk"}`, "other letters": `{"Device":"a"}`, "a fraction": `{"report":[0.5]}`,
		"a number as text": `{"report":["1"]}`, "beyond 64 bits": `{"report":[9223372036854775808]}`, "nested": `{"report":[[1]]}`,
		"too many": strings.Repeat("{}\n", MaxLines+1),
	} {
		if _, err := parse([]byte(text)); fault.CodeOf(err) != fault.CodeCollectReports {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzParse: no batch makes the reader fail in another way than with a line's number, and no refusal repeats what was read.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"device":"secret-device","token":"t","round":1,"report":[1]}`))
	f.Add([]byte("{\"device\":\"secret-device\"\n"))
	f.Add([]byte("[]\n{}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		lines, err := parse(body)
		if err != nil && (fault.CodeOf(err) != fault.CodeCollectReports || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%v", err)
		}
		for _, l := range lines {
			if l.number < 1 {
				t.Errorf("%+v", l)
			}
		}
	})
}
