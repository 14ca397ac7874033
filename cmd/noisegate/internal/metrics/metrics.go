// Package metrics shows a gateway's operators its state, in Prometheus' format.
//
// It knows which facts about a gateway may be shown. It does not know requests, datasets' rows, or who asks: no name of a person and no
// number that a database of people gives comes here. docs/monitoring.md says why each may be shown.
package metrics

import (
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"noisegate.example/budget"
	"noisegate.example/gateway"
)

// Sources are what is looked at when somebody reads the metrics. None of them may wait for a database.
type Sources struct {
	Datasets []string // of the configuration
	Routes   []string // "POST /v1/query"; each is there from the start, with zeros
	Gates    func() []gateway.GateState
	Ready    func() map[string]error // what is not well is not nil; see [gateway.Service.Ready]
	Heads    func() []budget.Head    // the newest entries of the ledger that are known
	Broken   func() []string         // datasets whose ledger is known to be broken, or is held
	Ahead    func() time.Duration    // how far the ledger's time is ahead of this machine's; nil: it is not shown
	// Unprintable counts the questions that were refused because a server does not accept their statement; see
	// [gateway.Service.Unprintable]. nil: it is not shown.
	Unprintable func() int64
	Sessions    func() int // of PostgreSQL's protocol; nil: it is not spoken
}

// Metrics gathers what happens and shows it. It is safe for concurrent use.
type Metrics struct {
	registry  *prometheus.Registry
	requests  *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	questions *prometheus.CounterVec
	accounts  *prometheus.GaugeVec
	read      prometheus.Gauge
	verified  prometheus.Gauge
	anchor    prometheus.Counter
}

// firstBound is the end of the first class of times, in seconds; each other class ends at twice the one before.
const firstBound = 0.05

// classes is how many classes of times there are, less that of all that is longer: the last one ends at 51.2 s.
const classes = 11

// deciles are the shares of a cap by which accounts are counted: what is used, rounded down to ten percent.
const deciles = 10

// New makes metrics whose counters are zero.
func New(s Sources) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "noisegate_requests_total",
			Help: "Requests over HTTP that were answered, by route and status."}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "noisegate_request_seconds",
			Help:    "How long requests over HTTP took, each rounded up to 50 ms times a power of two, also in the sum.",
			Buckets: prometheus.ExponentialBuckets(firstBound, 2, classes)}, []string{"route"}),
		questions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "noisegate_wire_questions_total",
			Help: "Questions over PostgreSQL's protocol that were answered, by SQLSTATE."}, []string{"sqlstate"}),
		accounts: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "noisegate_accounts",
			Help: "Accounts by how many percent of their cap are used, rounded down to ten."}, []string{"dataset", "scope", "used"}),
		read: prometheus.NewGauge(prometheus.GaugeOpts{Name: "noisegate_accounts_read_timestamp_seconds",
			Help: "When all accounts were read last."}),
		verified: prometheus.NewGauge(prometheus.GaugeOpts{Name: "noisegate_ledger_verified_timestamp_seconds",
			Help: "When all that came to the ledger was verified last."}),
		anchor: prometheus.NewCounter(prometheus.CounterOpts{Name: "noisegate_anchor_failures_total",
			Help: "How often the anchor could not be written."}),
	}
	m.registry.MustRegister(m.requests, m.seconds, m.accounts, m.read, m.verified, m.anchor, &states{s})
	for _, route := range s.Routes {
		for _, status := range []int{http.StatusOK, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable} {
			m.requests.WithLabelValues(route, strconv.Itoa(status)) // or the first one of them would be no increase
		}
	}
	if s.Sessions != nil {
		m.registry.MustRegister(m.questions)
		m.questions.WithLabelValues(successful)
	}
	return m
}

// successful is the SQLSTATE of what was not refused.
const successful = "00000"

// Handler shows the metrics. It compresses nothing, and waits for no database.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{DisableCompression: true})
}

// Request counts a request over HTTP that was answered. Of the time it took, what is kept is its class.
func (m *Metrics) Request(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(class(took))
}

// class is the end of a time's class, in seconds.
func class(took time.Duration) float64 {
	end := firstBound
	for range classes {
		if took.Seconds() <= end {
			break
		}
		end *= 2
	}
	return end
}

// Question counts a question over PostgreSQL's protocol; an empty state is that of an answer.
func (m *Metrics) Question(sqlstate string) {
	if sqlstate == "" {
		sqlstate = successful
	}
	m.questions.WithLabelValues(sqlstate).Inc()
}

// Verified says when the ledger was verified.
func (m *Metrics) Verified(at time.Time) { m.verified.Set(seconds(at)) }

// AnchorFailed counts an anchor that could not be written.
func (m *Metrics) AnchorFailed() { m.anchor.Inc() }

// Accounts says how much of their caps the accounts of all datasets have used, and when that was. Accounts have no names here: an analyst's
// is a person's.
func (m *Metrics) Accounts(of map[string][]budget.Balance, at time.Time) {
	for dataset, balances := range of {
		counts := map[budget.Scope]*[deciles + 1]int{budget.DatasetScope: {}, budget.GroupScope: {}, budget.AnalystScope: {}}
		for _, b := range balances {
			if count := counts[b.ID.Scope]; count != nil {
				count[decile(b)]++
			}
		}
		for scope, count := range counts {
			for i, n := range count {
				m.accounts.WithLabelValues(dataset, string(scope), strconv.Itoa(i*deciles)).Set(float64(n))
			}
		}
	}
	m.read.Set(seconds(at))
}

// decile is the tenth of its cap that an account has used; [deciles]: all of it.
func decile(b budget.Balance) int64 {
	const perDecile = 100 // of thousandths
	return budget.UsageOf(b.Limit, b.Used()).Permille / perDecile
}

func seconds(at time.Time) float64 { return float64(at.Unix()) }

// states are read when somebody asks.
type states struct{ Sources }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements [prometheus.Collector]: what is collected is not the same at all times, and so is not described.
func (s *states) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (s *states) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	places := desc("noisegate_gate_places", "Requests that may cost work at a time.", "gate")
	running := desc("noisegate_gate_running", "Requests that have a place.", "gate")
	waiting := desc("noisegate_gate_waiting", "Requests that wait for a place.", "gate")
	longest := desc("noisegate_gate_longest_queue", "Requests that wait, of the analyst with most of them.", "gate")
	queue := desc("noisegate_gate_queue_limit", "Requests of one analyst that may wait.", "gate")
	refused := desc("noisegate_gate_refused_total", "Requests that got no place: the queue was full, or the wait too long.", "gate", "why")
	for _, g := range s.Gates() {
		gauge(places, float64(g.Places), g.Name)
		gauge(running, float64(g.Running), g.Name)
		gauge(waiting, float64(g.Waiting), g.Name)
		gauge(longest, float64(g.Longest), g.Name)
		gauge(queue, float64(g.Queue), g.Name)
		to <- prometheus.MustNewConstMetric(refused, prometheus.CounterValue, float64(g.TooMany), g.Name, "queue")
		to <- prometheus.MustNewConstMetric(refused, prometheus.CounterValue, float64(g.TooLong), g.Name, "wait")
	}
	ready := desc("noisegate_ready", "1 where the last look found nothing wrong: what /readyz tells.", "check")
	if info, ok := debug.ReadBuildInfo(); ok {
		gauge(desc("noisegate_build_info", "Which version runs.", "version", "go"), 1, info.Main.Version, info.GoVersion)
	}
	checks := s.Ready()
	for _, name := range []string{"checks", "ledger", "datasets"} {
		err, looked := checks[name]
		gauge(ready, one(err == nil && (looked || name == "checks")), name)
	}
	broken := desc("noisegate_ledger_broken", "1 where a dataset's ledger is known to be broken.", "dataset")
	is := map[string]bool{}
	for _, dataset := range s.Broken() {
		is[dataset] = true
	}
	for _, dataset := range s.Datasets {
		gauge(broken, one(is[dataset]), dataset)
	}
	entries := desc("noisegate_ledger_entries", "The number of the newest entry of a dataset's ledger that this gateway knows.", "dataset")
	for _, h := range s.Heads() {
		gauge(entries, float64(h.Seq), h.Dataset)
	}
	if s.Unprintable != nil {
		unprintable := desc("noisegate_unprintable_total", "Questions that were refused as the server does not take their statement.")
		to <- prometheus.MustNewConstMetric(unprintable, prometheus.CounterValue, float64(s.Unprintable()))
	}
	if s.Ahead != nil {
		gauge(desc("noisegate_ledger_ahead_seconds", "How far the clock of the ledger's server, or its newest entry, is ahead of this gateway's "+
			"clock. Beyond 60 nothing may be written."), s.Ahead().Seconds())
	}
	if s.Sessions != nil {
		gauge(desc("noisegate_wire_sessions", "Clients that are logged in over PostgreSQL's protocol."), float64(s.Sessions()))
	}
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
