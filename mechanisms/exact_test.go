package mechanisms

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"testing"
)

// secret is recognisable in every base that a printer might choose.
const secret = 8675309

// TestSealedValuesDoNotPrint: no verb, flag, logger, nor container shows a sealed value, and equal values do not print the same because of
// a shared address.
func TestSealedValuesDoNotPrint(t *testing.T) {
	value := SealInt64(secret)
	holder := struct {
		Count  Exact
		Nested []Exact
		Ptr    *Exact
	}{value, []Exact{value}, &value}
	var shown []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%o", "%b", "%e", "%t", "%p", "%T", "%10.3d", "%c", "%U"} {
		shown = append(shown, fmt.Sprintf(verb, value), fmt.Sprintf(verb, &value), fmt.Sprintf(verb, holder),
			fmt.Sprintf(verb, &holder), fmt.Sprintf(verb, map[string]Exact{"a": value}))
	}
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("m", "value", value, "ptr", &value, "holder", holder)
	}
	shown = append(shown, log.String(), value.String(), value.GoString(), fmt.Sprint(value), fmt.Sprintln(holder))
	for _, text := range shown {
		for _, form := range []string{"8675309", "845fed", "845FED", "41057755", "8.675309"} {
			if strings.Contains(text, form) {
				t.Errorf("a sealed value shows in %q", text)
			}
		}
	}
}

// TestSealedValuesDoNotEncode: encoders get an error, not the value.
func TestSealedValuesDoNotEncode(t *testing.T) {
	value := SealInt64(secret)
	for name, encode := range map[string]func() ([]byte, error){
		"json":        func() ([]byte, error) { return json.Marshal(value) },
		"json field":  func() ([]byte, error) { return json.Marshal(struct{ V Exact }{value}) },
		"json map":    func() ([]byte, error) { return json.Marshal(map[string]any{"v": &value}) },
		"xml":         func() ([]byte, error) { return xml.Marshal(struct{ V Exact }{value}) },
		"text":        value.MarshalText,
		"binary":      value.MarshalBinary,
		"gob":         func() ([]byte, error) { return gobOf(value) },
		"gob in list": func() ([]byte, error) { return gobOf([]Exact{value}) },
	} {
		if out, err := encode(); err == nil {
			t.Errorf("%s encoded a sealed value: %q", name, out)
		}
	}
}

func gobOf(v any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

func TestSealTextTakesIntegersOnly(t *testing.T) {
	for _, text := range []string{"0", "-7", "8675309", "123456789012345678901234567890"} {
		e, err := SealText([]byte(text))
		if err != nil || e.open().String() != text {
			t.Errorf("%s: sealed as %s, %v", text, e.open(), err)
		}
	}
	for _, text := range []string{"", "1.5", "NaN", "Infinity", "0x10", "1e3", " 1", "secret"} {
		_, err := SealText([]byte(text))
		if err == nil {
			t.Errorf("%q was taken for an integer", text)
		} else if text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("the error repeats the data: %v", err)
		}
	}
}

// TestZeroExactIsZero: a group without rows.
func TestZeroExactIsZero(t *testing.T) {
	noise := Noise{small: 5, drawn: true}
	if got := noise.Release(Exact{}); got.Cmp(big.NewInt(5)) != 0 {
		t.Errorf("0 + 5 = %s", got)
	}
	noise = Noise{big: one(70), drawn: true}
	if got := noise.Release(SealInt64(-1)); got.Cmp(new(big.Int).Sub(one(70), big.NewInt(1))) != 0 {
		t.Errorf("-1 + 2⁷⁰ = %s", got)
	}
}

// TestSealCopies: the caller's later writes do not reach the sealed value.
func TestSealCopies(t *testing.T) {
	n := big.NewInt(41)
	e := Seal(n)
	n.SetInt64(0)
	if e.open().Int64() != 41 {
		t.Error("the seal shares memory with the caller")
	}
}

// TestUndrawnNoiseOpensNothing: no literal of Noise, of any package, is a way around the noise.
func TestUndrawnNoiseOpensNothing(t *testing.T) {
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "never drawn") || strings.Contains(text, "41") {
			t.Errorf("got %s", text)
		}
	}()
	t.Errorf("released %s", Noise{}.Release(SealInt64(41)))
}
