package httpapi

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/internal/fault"
)

// writeTimeout bounds how long a client may take to read its answer.
const writeTimeout = 30 * time.Second

// payload is a response that is complete before its first byte is sent.
type payload struct {
	status int
	kind   string // media type
	body   []byte
}

func (x *exchange) send(p payload) {
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(writeTimeout))
	h := x.w.Header()
	h.Set("Content-Type", p.kind)
	h.Set("Content-Length", strconv.Itoa(len(p.body)))
	x.w.WriteHeader(p.status)
	_, _ = x.w.Write(p.body) // a client that is gone misses its answer; the ledger keeps it
}

// compact writes a value as JSON as it is: <, > and & are escaped for HTML pages, which these bodies are not, and people read
// the plans and hints in them.
func compact(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// format is a media type of answers to queries.
type format struct {
	kind   string // as Accept names it
	full   string // as Content-Type names it
	encode func(_ *gateway.Answer, shown json.RawMessage) ([]byte, error)
	flat   bool // it has no place for notes
}

// formats are what answers can be given in; the first one is the default.
func formats() []format {
	return []format{
		{"application/json", "application/json; charset=utf-8", encodeJSON, false},
		{"application/x-ndjson", "application/x-ndjson", encodeNDJSON, true},
		{"text/csv", "text/csv; charset=utf-8; header=present", encodeCSV, true},
	}
}

// formatFor chooses by the Accept header: the format of the highest quality, of several the one that is named first.
func formatFor(h http.Header) (format, error) {
	offered := formats()
	accept := strings.Join(h.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		return offered[0], nil
	}
	best, quality := format{}, 0.0
	for item := range strings.SplitSeq(accept, ",") {
		kind, parameters, err := mime.ParseMediaType(item)
		if err != nil {
			continue
		}
		q := 1.0
		if text, ok := parameters["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		i := slices.IndexFunc(offered, func(f format) bool { return accepts(kind, f.kind) })
		if i >= 0 && q > quality {
			best, quality = offered[i], q
		}
	}
	if quality == 0 {
		kinds := make([]string, len(offered))
		for i, f := range offered {
			kinds[i] = f.kind
		}
		return format{}, fault.RequestNotAcceptable(kinds)
	}
	return best, nil
}

// accepts reports whether a range of an Accept header covers a media type.
func accepts(wanted, kind string) bool {
	family, _, _ := strings.Cut(kind, "/")
	return wanted == kind || wanted == "*/*" || wanted == family+"/*"
}

// answer sends an answer; what was spent stands in headers too, for formats that have no place for it.
func (x *exchange) answer(a *gateway.Answer, f format) error {
	var shown json.RawMessage
	text, sent, err := a.Encode(func(a *gateway.Answer) (_ []byte, err error) {
		if shown, err = a.Shown(); err != nil {
			return nil, err
		}
		return f.encode(a, shown)
	})
	defer sent()
	if err != nil {
		return fault.Internal(err)
	}
	x.w.Header().Set("Noisegate-Replayed", strconv.FormatBool(a.Replayed))
	if at := releasedAt(a); at != nil {
		x.w.Header().Set("Noisegate-Released-At", at.Format(time.RFC3339Nano))
	}
	if at := asOf(a); at != nil {
		x.w.Header().Set("Noisegate-As-Of", at.Format(time.RFC3339Nano))
	}
	if f.flat {
		x.notes(shown)
	}
	x.amounts(string(a.ID), a.Spent, a.Remaining)
	x.receipt(a.Receipt)
	x.send(payload{status: http.StatusOK, kind: f.full, body: text})
	return nil
}

// maxNotes is how long the header of notes may be: proxies take headers of some 8 KiB in all.
const maxNotes = 4 << 10

// notes sets the header of the notes, as JSON in ASCII; of notes that are too long their codes alone. None for none.
func (x *exchange) notes(stored json.RawMessage) {
	var result struct {
		Notes []struct {
			Code string `json:"code"`
			Text string `json:"text,omitempty"`
		} `json:"notes"`
	}
	if json.Unmarshal(stored, &result) != nil || len(result.Notes) == 0 {
		return
	}
	for range 2 {
		if text, err := json.Marshal(result.Notes); err == nil {
			if header := inASCII(string(text)); len(header) <= maxNotes {
				x.w.Header().Set("Noisegate-Notes", header)
				return
			}
		}
		for i := range result.Notes {
			result.Notes[i].Text = ""
		}
	}
}

// inASCII is a JSON text with the characters beyond ASCII escaped.
func inASCII(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < 0x7f {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// receipt sets the header of a receipt; none for none.
func (x *exchange) receipt(text json.RawMessage) {
	if text != nil {
		x.w.Header().Set("Noisegate-Receipt", string(text))
	}
}

// amounts sets the headers about a charge; empty ones are left out.
func (x *exchange) amounts(release string, spent, remaining api.Amounts) {
	for name, text := range map[string]api.Decimal{
		"Noisegate-Release-Id":    api.Decimal(release),
		"Noisegate-Spent-Epsilon": spent.Epsilon, "Noisegate-Spent-Rho": spent.Rho, "Noisegate-Spent-Delta": spent.Delta,
		"Noisegate-Remaining-Epsilon": remaining.Epsilon, "Noisegate-Remaining-Rho": remaining.Rho,
	} {
		if text != "" {
			x.w.Header().Set(name, string(text))
		}
	}
}

// encodeJSON sets the stored bytes between what is about this request, so that replays repeat them byte for byte. The
// result is [api.QueryResponse].
func encodeJSON(a *gateway.Answer, shown json.RawMessage) ([]byte, error) {
	head, err := json.Marshal(struct {
		ReleaseID string `json:"release_id"`
		Dataset   string `json:"dataset"`
		Replayed  bool   `json:"replayed"`
	}{string(a.ID), a.Dataset, a.Replayed})
	if err != nil {
		return nil, err
	}
	tail, err := json.Marshal(struct {
		Spent       api.Amounts `json:"spent"`
		Remaining   api.Amounts `json:"remaining"`
		ReleasedAt  *time.Time  `json:"released_at,omitempty"`
		DataVersion string      `json:"data_version,omitempty"`
		AsOf        *time.Time  `json:"as_of,omitempty"`
		Newer       *api.Newer  `json:"newer,omitempty"`
	}{a.Spent, a.Remaining, releasedAt(a), a.Data, asOf(a), a.Newer})
	if err != nil {
		return nil, err
	}
	// Three objects, {...}{...}{...}, become one.
	var b bytes.Buffer
	b.Write(head[:len(head)-1])
	b.WriteByte(',')
	b.Write(shown[1 : len(shown)-1])
	b.WriteByte(',')
	b.Write(tail[1:])
	return b.Bytes(), nil
}

// releasedAt is when a replay was released; nil for other answers.
func releasedAt(a *gateway.Answer) *time.Time {
	if !a.Replayed {
		return nil
	}
	return &a.At
}

// asOf is the time of an answer's rows; nil: it was released now.
func asOf(a *gateway.Answer) *time.Time {
	if a.AsOf.IsZero() {
		return nil
	}
	return &a.AsOf
}

// table is a result for formats without nesting: the bounds of intervals are columns of their own, x_low and x_high.
type table struct {
	header []string
	rows   [][]api.Value
}

func flatten(stored json.RawMessage) (*table, error) {
	var result api.Result
	if err := json.Unmarshal(stored, &result); err != nil {
		return nil, err
	}
	t := &table{rows: make([][]api.Value, len(result.Rows))}
	for _, c := range result.Columns {
		t.header = append(t.header, c.Name)
		if c.Kind != "key" {
			t.header = append(t.header, c.Name+"_low", c.Name+"_high")
		}
	}
	t.header = distinct(t.header)
	for i, row := range result.Rows {
		for j, value := range row {
			t.rows[i] = append(t.rows[i], value)
			if result.Columns[j].Kind == "key" {
				continue
			}
			bounds := api.Bounds{}
			if interval := result.Intervals[i][j]; interval != nil {
				bounds = *interval
			}
			t.rows[i] = append(t.rows[i], bounds[0], bounds[1])
		}
	}
	return t, nil
}

// distinct numbers names that occur again: count, count_2.
func distinct(names []string) []string {
	seen := map[string]bool{}
	for i, name := range names {
		unique := name
		for n := 2; seen[unique]; n++ {
			unique = name + "_" + strconv.Itoa(n)
		}
		seen[unique], names[i] = true, unique
	}
	return names
}

// encodeNDJSON writes one object a line, in the order of the columns.
func encodeNDJSON(_ *gateway.Answer, shown json.RawMessage) ([]byte, error) {
	t, err := flatten(shown)
	if err != nil {
		return nil, err
	}
	names := make([][]byte, len(t.header))
	for i, name := range t.header {
		if names[i], err = json.Marshal(name); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	for _, row := range t.rows {
		for i, value := range row {
			text, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			b.WriteByte("{,"[min(i, 1)])
			b.Write(names[i])
			b.WriteByte(':')
			b.Write(text)
		}
		b.WriteString("}\n")
	}
	return b.Bytes(), nil
}

// encodeCSV writes a header line and one line a row (RFC 4180); NULL is an empty field.
func encodeCSV(_ *gateway.Answer, shown json.RawMessage) ([]byte, error) {
	t, err := flatten(shown)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.UseCRLF = true
	lines := [][]string{t.header}
	for _, row := range t.rows {
		line := make([]string, len(row))
		for i, value := range row {
			line[i] = value.String()
		}
		lines = append(lines, line)
	}
	if err := w.WriteAll(lines); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
