package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"noisegate.example/api"
)

var (
	replaysLeast = flag.Float64("replays", 4, "how often BenchmarkReplays must replay while one new question is answered, at least; "+
		"a run of less than 1,000 questions is content with 1")
	benchBefore = flag.String("before", "", "another binary of the gateway, which BenchmarkReplays and BenchmarkPaired ask in turn "+
		"with the one under test")
)

const (
	replayClients   = 64
	replayRounds    = 3   // each of new questions and of replays, in turn: medians are compared
	replayQuestions = 256 // that are asked again
)

// BenchmarkReplays asks counts on a small table with 64 clients at quantum 0: new questions, and in turn a few again that were
// answered before. Generator, gateway and PostgreSQL share the machine; the generator reads answers and does not decode them.
func BenchmarkReplays(b *testing.B) {
	gateways := map[string]*stack{"now": nil}
	if *benchBefore != "" {
		gateways["before"] = nil
	}
	for name := range gateways {
		set := people(`  - {dataset: true, form: approx, epsilon: 1000000, delta: 1e-3}
  - {group: analysts, per: analyst, form: approx, epsilon: 1000000, delta: 1e-4}
`)
		s := prepareStack(b, set)
		s.writeConfig(b, []dataset{set})
		if name == "before" {
			s.program = *benchBefore
		}
		s.ready(b, []dataset{set})
		gateways[name] = s
	}
	n := max(b.N, 2*replayQuestions)
	clients := slices.Repeat([]string{"ana"}, replayClients)
	fresh, replayed := map[string][]float64{}, map[string][]float64{}
	asked := map[string]int{}
	work := map[string]time.Duration{} // processor time of gateway and PostgreSQL
	for range replayRounds {
		for name, s := range gateways {
			from := asked[name]
			asked[name] += n
			used := func() time.Duration {
				return processorTime(b, s.gateway.Process.Pid) + processorTime(b, s.postmaster(b))
			}
			began := used()
			fresh[name] = append(fresh[name], s.throughput(b, clients, n, func(i int) api.QueryRequest { return clubs(from + i) }))
			between := used()
			replayed[name] = append(replayed[name],
				s.throughput(b, clients, 2*n, func(i int) api.QueryRequest { return clubs(i % replayQuestions) }))
			work[name+"-new"] += between - began
			work[name+"-replay"] += used() - between
		}
	}
	for name := range gateways {
		b.ReportMetric(microseconds(work[name+"-new"])/float64(replayRounds*n), name+"-new-cpu-µs")
		b.ReportMetric(microseconds(work[name+"-replay"])/float64(2*replayRounds*n), name+"-replay-cpu-µs")
	}
	median := func(all []float64) float64 { slices.Sort(all); return all[len(all)/2] }
	for name := range gateways {
		b.ReportMetric(median(fresh[name]), name+"-new/s")
		b.ReportMetric(median(replayed[name]), name+"-replays/s")
	}
	if *benchBefore != "" {
		b.ReportMetric(median(fresh["now"])/median(fresh["before"]), "new-now/before")
	}
	ratio, least := median(replayed["now"])/median(fresh["now"]), *replaysLeast
	b.ReportMetric(ratio, "replays/new")
	if b.N < 1000 {
		least = min(least, 1)
	}
	if ratio < least {
		b.Errorf("%.2f replays while one new question is answered, want %.2f", ratio, least)
	}
}

// clubs is a question that another number makes another one.
func clubs(i int) api.QueryRequest {
	return api.QueryRequest{Dataset: "people", SQL: "SELECT club, count(*) FROM people GROUP BY club", Epsilon: price(i)}
}

// throughput asks questions by their number, with a client for each of several analysts that each keep a connection, and gives how many are
// answered a second.
func (s *stack) throughput(b *testing.B, analysts []string, n int, question func(i int) api.QueryRequest) float64 {
	b.Helper()
	address, err := url.Parse(s.url)
	if err != nil {
		b.Fatal(err)
	}
	var next, failed atomic.Int64
	var group sync.WaitGroup
	tokens := make([]string, len(analysts))
	for i, analyst := range analysts {
		tokens[i] = s.tokenOnce(b, analyst, "analyst")
	}
	start := time.Now()
	for _, token := range tokens {
		group.Go(func() {
			conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", address.Host)
			if err != nil {
				failed.Add(1)
				return
			}
			defer conn.Close()
			answers := bufio.NewReader(conn)
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if !askPlainly(conn, answers, token, question(i)) {
					failed.Add(1)
					return
				}
			}
		})
	}
	group.Wait()
	took := time.Since(start)
	if failed.Load() > 0 {
		b.Fatalf("%d clients were not answered", failed.Load())
	}
	return float64(n) / took.Seconds()
}

// askPlainly asks a question on a connection, and reports whether it was answered.
func askPlainly(conn net.Conn, answers *bufio.Reader, token string, question api.QueryRequest) bool {
	body, err := json.Marshal(question)
	if err != nil {
		return false
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "POST /v1/query HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n", token, len(body))
	text.Write(body)
	if _, err := conn.Write(text.Bytes()); err != nil {
		return false
	}
	answer, err := http.ReadResponse(answers, nil)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err == nil && answer.StatusCode == http.StatusOK
}
