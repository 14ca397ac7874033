package httpapi

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
)

// signing is a gateway whose answers carry receipts.
func signing(t *testing.T) (*front, *gatewaytest.Signer) {
	t.Helper()
	signer := gatewaytest.NewSigner(t)
	return newFront(t, gatewaytest.Options{Change: func(c *gateway.Config) { c.Signer = signer }}, 4), signer
}

// signed sends a request and gives its answer and its receipt.
func (f *front) signed(t *testing.T, signer *gatewaytest.Signer, c call, answer any) gatewaytest.Receipt {
	t.Helper()
	c.method, c.kind = http.MethodPost, "application/json"
	response, text := f.do(t, c)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", response.Status, text)
	}
	if err := json.Unmarshal([]byte(text), answer); err != nil {
		t.Fatal(err)
	}
	return f.Receipt(t, signer, response.Header.Get("Noisegate-Receipt"))
}

// TestReceiptsOfLabels: labels, histograms and sanitised ε carry receipts as answers to queries do, replays too, and their holder can
// compare them with what the ledger says was bought.
//
// covers: A70
func TestReceiptsOfLabels(t *testing.T) {
	f, signer := signing(t)
	sealedForEpsilon(t, f, "digits", 40)
	ask := call{path: "/v1/pate/digits/labels", token: "mel:ml",
		body: `{"queries":["q1","q2","q3"],"mechanism":"gnmax","sigma":"5","return":"histogram"}`}
	var first, wider, replayed api.LabelResponse
	receipt := f.signed(t, signer, ask, &first)
	if string(receipt.Reservation) != first.ReleaseID || f.Settled(t, first.ReleaseID) != hex.EncodeToString(receipt.Answer[:]) {
		t.Errorf("the receipt %+v is not of release %s", receipt, first.ReleaseID)
	}
	if bought := f.bought(t, "mel:ml", first.ReleaseID); bought != digestOf(t, first.Labels) {
		t.Errorf("the release bought labels %s, and these are %s", bought, digestOf(t, first.Labels))
	}
	*first.Labels[0].Label ^= 1
	if f.bought(t, "mel:ml", first.ReleaseID) == digestOf(t, first.Labels) {
		t.Error("another label has the same digest")
	}

	// Of a batch that was released in part the receipt is about the rest.
	ask.body, ask.token = `{"queries":["q3","q4"],"mechanism":"gnmax","sigma":"5","return":"histogram"}`, "mel:ml"
	f.signed(t, signer, ask, &wider)
	if !wider.Labels[0].Replayed || f.bought(t, "mel:ml", wider.ReleaseID) != digestOf(t, wider.Labels[1:]) {
		t.Errorf("%+v", wider.Labels)
	}

	// What is all replays was not charged: the receipt names no release, and has the labels themselves.
	free := f.signed(t, signer, ask, &replayed)
	if err := free.Check(signer.Public(), []byte(digestOf(t, replayed.Labels))); err != nil || free.Reservation != "" ||
		replayed.ReleaseID != "" {
		t.Errorf("%v, %+v", err, free)
	}
}

// TestReceiptsOfEpsilon: the receipt of a sanitised ε is of the charge that it was drawn with, however often it is asked for.
//
// covers: A70
func TestReceiptsOfEpsilon(t *testing.T) {
	f, signer := signing(t)
	sealedForEpsilon(t, f, "digits", 40)
	run := `"mechanism":"confident","sigma1":"20","sigma2":"15","threshold":"70"`
	var labels api.LabelResponse
	f.signed(t, signer, call{path: "/v1/pate/digits/labels", token: "mel:ml", body: `{"queries":["q1","q2","q3"],` + run + `}`}, &labels)
	var drawn, again api.SanitisedEpsilon
	ask := call{path: "/v1/pate/digits/epsilon", token: "sam:steward", body: "{" + run + "}"}
	first := f.signed(t, signer, ask, &drawn)
	ask.token = "sue:steward"
	second := f.signed(t, signer, ask, &again)
	if !again.Replayed || second.Reservation != first.Reservation || second.Answer != first.Answer {
		t.Errorf("%+v and then %+v", first, second)
	}
	if f.Settled(t, string(first.Reservation)) != hex.EncodeToString(first.Answer[:]) {
		t.Error("the receipt has another answer than the ledger")
	}
}

// bought is the digest of labels that a release shows.
func (f *front) bought(t *testing.T, token, id string) string {
	t.Helper()
	release, err := f.client(token).Release(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	last := len(release.Columns) - 1
	if release.Columns[last].Name != "labels_sha256" {
		t.Fatalf("%+v", release.Columns)
	}
	return release.Rows[0][last].String()
}

func digestOf(t *testing.T, labels []api.Label) string {
	t.Helper()
	digest, err := api.LabelsDigest(labels)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}
