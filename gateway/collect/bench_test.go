package collect

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
)

// BenchmarkBatch reads, checks and counts a batch of 5,000 reports, all that is done of it outside of the database. OLH over 10,000 values
// hashes each of them for each report.
func BenchmarkBatch(b *testing.B) {
	for _, c := range []struct {
		mechanism string
		values    int
	}{{"krr", 3}, {"oue", 42}, {"olh", 1001}, {"olh", 10_000}} {
		b.Run(fmt.Sprintf("%s of %d", c.mechanism, c.values), func(b *testing.B) {
			private, public := keys(b, "steward")
			d := api.CollectionDefinition{Kind: "choice", Mechanism: c.mechanism, Epsilon: "1", EnrolmentKey: public}
			for i := range c.values {
				d.Domain = append(d.Domain, fmt.Sprint(i))
			}
			q, err := newQuestion("bench", d)
			if err != nil {
				b.Fatal(err)
			}
			collection, err := q.open()
			if err != nil {
				b.Fatal(err)
			}
			s := mechanisms.NewSamplerFrom(randomtest.Source(b.Name()))
			var body strings.Builder
			for i := range MaxLines {
				r, err := collection.protocol.Report(s, []int64{int64(i % c.values)})
				if err != nil {
					b.Fatal(err)
				}
				e := Enrolment{"bench", fmt.Sprintf("device-%d", i)}
				text, err := json.Marshal(api.DeviceReport{Device: e.Device, Token: e.Token(private), Report: r})
				if err != nil {
					b.Fatal(err)
				}
				fmt.Fprintf(&body, "%s\n", text)
			}
			batch := []byte(body.String())
			b.ResetTimer()
			for b.Loop() {
				lines, err := parse(batch)
				if err != nil {
					b.Fatal(err)
				}
				tally := collection.protocol.NewTally()
				for _, l := range lines {
					if _, reason := collection.check(l); reason != "" {
						b.Fatal(reason)
					}
					collection.protocol.Add(&tally, l.Report)
				}
			}
		})
	}
}
