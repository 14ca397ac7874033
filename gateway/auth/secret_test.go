package auth_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"noisegate.example/gateway/auth"
)

// Random keys are taken, whichever way they are written down, and are what whoever signs takes from the same file; binary ones whose last
// byte is white space are refused.
func TestRandomSecrets(t *testing.T) {
	const spaces = " \t\r\n"
	path := filepath.Join(t.TempDir(), "key")
	for i := range 500 {
		digest := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		binary := string(digest[:])
		for kind, text := range map[string]string{
			"hex":    hex.EncodeToString(digest[:16]) + "\n",
			"base64": base64.StdEncoding.EncodeToString(digest[:]) + "\r\n",
			"binary": binary,
		} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := auth.ReadSecret(path)
			want := text
			if kind != "binary" {
				want = strings.TrimRight(text, "\r\n")
			} else if strings.ContainsAny(binary[31:], spaces) {
				want = ""
			}
			if string(got) != want || (err == nil) != (want != "") {
				t.Errorf("%s key %d: %q is read as %q, %v", kind, i, text, got, err)
			}
		}
	}
}

// A key that is taken is one of the file's bytes, without the ends of lines at most, and no error shows it.
func FuzzReadSecret(f *testing.F) {
	path := filepath.Join(f.TempDir(), "key")
	for _, seed := range []string{secret + "\n", strings.Repeat("a", 40), secret + "\xff \t", "\r\n" + secret, secret + "\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := auth.ReadSecret(path)
		if err != nil {
			if len(text) >= 32 && strings.Contains(err.Error(), string(text[:16])) {
				t.Errorf("the error shows the key: %v", err)
			}
			return
		}
		if rest := strings.TrimPrefix(string(text), string(got)); len(got) < 32 || strings.Trim(rest, "\r\n") != "" ||
			slices.Contains([]byte(" \t\r\n"), got[len(got)-1]) {
			t.Errorf("%q is read as %q", text, got)
		}
	})
}

// Texts that people think of are no keys, however long; what random bytes look like in text is one.
func TestSecretsAreRandomTexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	for text, taken := range map[string]bool{
		"correct horse battery staple Tr0ub4dor":                             false,
		"correcthorsebatterystaplecorrectly1":                                false,
		"CORRECTHORSEBATTERYSTAPLECORRECTLY1":                                false,
		"CorrectHorseBatteryStapleCorrectly":                                 false,
		"Correct.Horse.Battery.Staple.2026":                                  false,
		"0123456789abcdef0123456789abcdef":                                   true,
		"3F2504E04F8941D39A0C0305E82C3301":                                   true,
		"q3Jv0d1bYw8s9KcTzX5mNfRgHhLpAeUo":                                   true,
		"q3Jv0d1bYw8s9KcTzX5mNfRgHhLpAeU-_w==":                               true,
		"q3Jv0d1bYw8s9KcTzX5mNfRgHhLpAeUo\nq3Jv0d1bYw8s9KcTzX5mNfRgHhLpAeUp": true,
		"q3Jv0d1bYw8s9KcTzX5mNfRgHhLpAeU":                                    false, // 31
	} {
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := auth.ReadSecret(path); (err == nil) != taken {
			t.Errorf("%q: %v", text, err)
		}
	}
}
