package httpapi

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/gateway/internal/connlimit"
	"noisegate.example/internal/fault"
)

// TestLoginAtProvider: where there is a provider people are told, and a log-in that it does not bear out gives nothing, however often it is
// tried from one address.
func TestLoginAtProvider(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 1)
	request := call{method: "POST", path: providerPattern, kind: "application/json", body: `{}`}
	if response, _ := f.do(t, request); response.StatusCode != 404 {
		t.Errorf("without a provider: %d", response.StatusCode)
	}
	asked := 0
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			asked++
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
			return
		}
		base := "http://" + r.Host
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": base, "authorization_endpoint": base + "/auth",
			"token_endpoint": base + "/token", "end_session_endpoint": base + "/end"})
	}))
	defer home.Close()
	keys := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(keys, []byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	verifier, err := auth.New(t.Context(), auth.Config{Issuer: home.URL, Audience: "noisegate", Keys: auth.Keys{JWKSFile: keys}})
	if err != nil {
		t.Fatal(err)
	}
	provider, err := auth.NewProvider(verifier, "console", "openid", nil)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := New(Config{Service: f.Service, Labels: f.Labels, Verifier: verifier, Provider: provider,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	send := func(method, path, body string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		handler.ServeHTTP(w, r)
		return w
	}
	var offer api.LoginOffer
	if w := send("GET", loginPattern, ""); w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &offer) != nil || offer.Provider == nil ||
		*offer.Provider != (api.LoginProvider{Issuer: home.URL, AuthorizationEndpoint: home.URL + "/auth", ClientID: "console", Scope: "openid",
			EndSessionEndpoint: home.URL + "/end"}) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	body := `{"code":"c","redirect_uri":"https://g.test/","code_verifier":"` + strings.Repeat("v", 43) + `","nonce":"` +
		strings.Repeat("n", 43) + `"}`
	begun := 0
	for ; begun < 10*loginsAtOnce; begun++ { // some come back meanwhile
		w := send("POST", providerPattern, body)
		if w.Code == 429 && w.Header().Get("Retry-After") == "1" {
			break
		}
		if w.Code != 401 || codeOf(t, w.Body.String()) != fault.CodeAuthInvalid {
			t.Fatalf("log-in %d: %d %s", begun, w.Code, w.Body)
		}
	}
	if begun < loginsAtOnce || begun == 10*loginsAtOnce || asked != begun {
		t.Errorf("%d log-ins were begun, and the provider was asked %d times", begun, asked)
	}
	home.Close()
	if w := send("GET", loginPattern, ""); w.Code != 200 { // as it was told before
		t.Errorf("the provider is gone: %d %s", w.Code, w.Body)
	}
}

// TestAttempts: an address has its log-ins back with time, keeps nobody else from theirs, and no number of addresses takes more memory than
// the first few.
func TestAttempts(t *testing.T) {
	var a attempts
	now := time.Unix(0, 0)
	refused := func(address string) bool {
		leave, err := a.enter(connlimit.Client(address), now)
		if err == nil {
			leave()
		}
		return err != nil
	}
	for i := range loginsAtOnce + 1 {
		if got := refused("192.0.2.1:1000"); got != (i == loginsAtOnce) {
			t.Fatalf("log-in %d: refused %t", i, got)
		}
	}
	if refused("192.0.2.2:1000") || refused("[2001:db8::1]:1") || !refused("[::ffff:192.0.2.1]:7") {
		t.Error("addresses are not told apart")
	}
	now = now.Add(time.Second / loginsPerSecond)
	if refused("192.0.2.1:1000") || !refused("192.0.2.1:1000") {
		t.Error("after half a second one more is due")
	}
	address := netip.MustParseAddr("10.0.0.0")
	for range 2 * loginAddresses {
		_ = refused(netip.AddrPortFrom(address, 1).String())
		address = address.Next()
	}
	if len(a.of) > loginAddresses+1 || !refused("192.0.2.1:1000") {
		t.Errorf("%d addresses are known", len(a.of))
	}
	if !refused(netip.AddrPortFrom(address, 1).String()) {
		t.Error("those beyond share what one address has")
	}
	now = now.Add(time.Hour)
	if refused(netip.AddrPortFrom(address, 1).String()) || len(a.of) > 1 {
		t.Errorf("after an hour %d addresses are known", len(a.of))
	}
	var leave func()
	for i := range loginsUnderWay {
		client := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i / loginsOfOne)}), 1).String()
		var err error
		if leave, err = a.enter(connlimit.Client(client), now); err != nil {
			t.Fatal(err)
		}
		if i == loginsOfOne-1 && (!refused("192.0.2.0:1") || refused("192.0.2.10:1")) {
			t.Error("one address has more than its part under way, or others have none")
		}
	}
	if !refused("192.0.2.10:1") {
		t.Error("nothing bounds how many are under way")
	}
	if leave(); refused("192.0.2.3:1") {
		t.Error("what ended is still counted")
	}
}
