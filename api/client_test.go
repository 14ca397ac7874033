package api_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"noisegate.example/api"
)

// TestNoGateway: the error for a wrong address names it, and what to check; passwords in it are not shown.
func TestNoGateway(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	other := httptest.NewUnstartedServer(http.NotFoundHandler())
	other.Config.ErrorLog = log.New(io.Discard, "", 0)
	other.StartTLS()
	defer other.Close()
	for base, shown := range map[string]string{
		closed.URL: closed.URL,
		strings.Replace(closed.URL, "://", "://ana:secret@", 1): strings.Replace(closed.URL, "://", "://ana:xxxxx@", 1),
		strings.TrimPrefix(closed.URL, "http://"):               strings.TrimPrefix(closed.URL, "http://"),
		other.URL: other.URL, // its certificate is unknown
	} {
		_, err := api.NewClient(base, "token").Budget(t.Context(), "")
		if err == nil || !strings.HasPrefix(err.Error(), "no gateway answers at "+shown+": ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", base, err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := api.NewClient(closed.URL, "token").Budget(ended, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
}
