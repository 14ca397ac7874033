package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"noisegate.example/api"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/strictjson"
	"noisegate.example/mechanisms/local"
)

// MaxLines bounds the reports of one batch.
const MaxLines = 5000

// The reasons for which a report is refused.
const (
	notEnrolled  = "not-enrolled"
	unknownRound = "unknown-round"
	notReport    = "not-a-report"
	secondReport = "second-report"
)

// Receive takes a batch of reports, one a line. A device's second report of a round is refused, unless it is the first
// one again; so are reports of devices that were not enrolled and what no device sends that keeps to the protocol. The
// other lines are taken, all or, where the database fails, none. For collectors.
func (s *Service) Receive(ctx context.Context, who auth.Principal, name string, body []byte) (*api.ReportsTaken, error) {
	release, err := s.gate.Enter(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release()
	c, err := s.store.collection(ctx, name)
	if err != nil {
		return nil, err
	}
	lines, err := parse(body)
	if err != nil {
		return nil, err
	}
	answer := &api.ReportsTaken{Refused: []api.RefusedReport{}}
	rounds := map[int64][]report{}
	for _, l := range lines {
		r, reason := c.check(l)
		if reason != "" {
			answer.Refused = append(answer.Refused, api.RefusedReport{Line: l.number, Reason: reason})
			continue
		}
		rounds[l.Round] = append(rounds[l.Round], r)
	}
	if err := s.store.take(ctx, c, rounds, answer); err != nil {
		return nil, err
	}
	slices.SortFunc(answer.Refused, func(a, b api.RefusedReport) int { return a.Line - b.Line })
	return answer, nil
}

// line is a line of a batch.
type line struct {
	api.DeviceReport
	number int
}

// report is one that may be taken.
type report struct {
	device [32]byte
	text   string // canonical
	report local.Report
	line   int
}

// parse reads all lines of a batch; lines without any text are none. Its errors name the line and nothing of it.
func parse(body []byte) ([]line, error) {
	var list []line
	number := 0
	for text := range bytes.Lines(body) {
		number++
		text = bytes.TrimSpace(text)
		if len(text) == 0 {
			continue
		}
		if len(list) == MaxLines {
			return nil, fault.CollectReports(number, "a batch has at most 5000 reports")
		}
		l := line{number: number}
		if !l.read(text) {
			return nil, fault.CollectReports(number, "this is not one JSON object of device, token, round and report, each at most once")
		}
		list = append(list, l)
	}
	if len(list) == 0 {
		return nil, fault.CollectReports(1, "there is no report")
	}
	return list, nil
}

// read takes the members of a line, names to the letter.
func (l *line) read(text []byte) bool {
	var members map[string]json.RawMessage
	if strictjson.Check(text) != nil || json.Unmarshal(text, &members) != nil || members == nil {
		return false
	}
	l.Round = 1
	for name, raw := range members {
		to, known := map[string]any{"device": &l.Device, "token": &l.Token, "round": &l.Round, "report": &l.Report}[name]
		if !known || json.Unmarshal(raw, to) != nil {
			return false
		}
	}
	return true
}

// check finds out whether a line may be taken, or why not.
func (c *collection) check(l line) (r report, reason string) {
	device := Enrolment{c.question.Name, l.Device}
	switch {
	case !device.signedBy(c.key, l.Token):
		return r, notEnrolled
	case l.Round < 1 || l.Round > c.question.Rounds:
		return r, unknownRound
	case c.protocol.Check(l.Report) != nil:
		return r, notReport
	}
	text, err := json.Marshal(l.Report)
	if err != nil || l.Report == nil {
		return r, notReport
	}
	return report{device: device.digest(), text: string(text), report: l.Report, line: l.number}, ""
}

// errForeign says that what is stored is none of the collection's.
var errForeign = errors.New("collect: what is stored does not fit its collection")
