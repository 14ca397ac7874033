package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"noisegate.example/api"
	"noisegate.example/budget/journal"
	"noisegate.example/gateway/collect"
)

// collectCommands are local differential privacy: devices randomise, the gateway estimates.
type collectCommands struct {
	Define    collectDefineCommand    `cmd:"" help:"Define what devices report (stewards)."`
	Client    collectClientCommand    `cmd:"" help:"Print what a device needs to know, for --spec and for authors of clients."`
	Enrol     collectEnrolCommand     `cmd:"" help:"Sign the devices of standard input, an object with a device in each line. Needs no gateway."`
	Randomize collectRandomizeCommand `cmd:"" help:"Be the devices: turn values into randomised reports. Needs no gateway."`
	Send      collectSendCommand      `cmd:"" help:"Send randomised reports (collectors)."`
	Estimate  collectEstimateCommand  `cmd:"" help:"Show what the reports say together. Free."`
}

type collectDefineCommand struct {
	Collection   string   `arg:"" help:"The name of the collection."`
	Kind         string   `enum:"choice,number,vector" default:"choice" help:"What a device reports: choice, number or vector (of probabilities)."`
	Domain       []string `help:"The values of a choice, or the names of a vector's coordinates." placeholder:"A,B,..."`
	Low          string   `help:"The smallest number." placeholder:"N"`
	High         string   `help:"The largest number." placeholder:"N"`
	Mechanism    string   `enum:"auto,krr,sue,oue,olh,duchi,piecewise,laplace" default:"auto" help:"How devices randomise: auto; krr, sue, oue or olh; duchi, piecewise or laplace."`
	Epsilon      string   `required:"" help:"Of one report." placeholder:"E"`
	Rounds       int64    `default:"1" help:"How many reports a device may send, each at that epsilon." placeholder:"N"`
	EnrolmentKey string   `required:"" help:"File of the public key that checks devices; budget key makes such a pair." type:"path" placeholder:"FILE"`
	gatewayFlags
}

func (c *collectDefineCommand) ask(ctx context.Context, a *app, client *api.Client) error {
	key, err := os.ReadFile(c.EnrolmentKey)
	if err != nil {
		return usage(err)
	}
	defined, err := client.DefineCollection(ctx, c.Collection, api.CollectionDefinition{Kind: c.Kind, Domain: c.Domain,
		Low: api.Decimal(c.Low), High: api.Decimal(c.High), Mechanism: c.Mechanism, Epsilon: api.Decimal(c.Epsilon), Rounds: &c.Rounds,
		EnrolmentKey: string(key)})
	if said, err := a.said(c.JSON, defined, err); said {
		return err
	}
	t := &table{grouped: a.terminal}
	t.header("collection", "kind", "values", "mechanism", "epsilon", "rounds")
	values := strconv.Itoa(len(defined.Domain))
	if len(defined.Domain) == 0 {
		values = string(defined.Low) + " to " + string(defined.High)
	}
	t.row(defined.Collection, defined.Kind, values, defined.Mechanism, string(defined.Epsilon), strconv.FormatInt(defined.Rounds, 10))
	t.write(a.Out)
	return nil
}

type collectClientCommand struct {
	Collection string `arg:"" help:"The name of the collection."`
	gatewayFlags
}

func (c *collectClientCommand) ask(ctx context.Context, a *app, client *api.Client) error {
	spec, err := client.CollectionClient(ctx, c.Collection)
	if err != nil {
		return a.refused(c.JSON, "", err)
	}
	return printJSON(a.Out, spec)
}

type collectEnrolCommand struct {
	Collection string `arg:"" help:"The name of the collection."`
	Key        string `required:"" type:"path" help:"The steward's private key, which budget key made." placeholder:"FILE"`
}

// enrolled is a device with its token.
type enrolled struct {
	Device string `json:"device"`
	Token  string `json:"token"`
}

func (c *collectEnrolCommand) run(_ context.Context, a *app) error {
	text, err := os.ReadFile(c.Key)
	if err != nil {
		return usage(err)
	}
	key, err := journal.ParsePrivateKey(text)
	if err != nil {
		return usage(err)
	}
	return a.eachLine(func(line []byte) (any, error) {
		var device struct {
			Device string `json:"device"`
		}
		if err := readLine(line, &device); err != nil {
			return nil, err
		}
		e := collect.Enrolment{Collection: c.Collection, Device: device.Device}
		if !e.Valid() {
			return nil, errors.New("a collection or a device cannot have such a name: 1 to 128 bytes without control characters")
		}
		return enrolled{device.Device, e.Token(key)}, nil
	})
}

// maxInputLine bounds a line of standard input, bytes.
const maxInputLine = 1 << 20

// eachLine turns each line of standard input that is not blank into a line of JSON. Errors name the line by its number alone: a value is
// nobody else's.
func (a *app) eachLine(turn func(line []byte) (any, error)) error {
	scanner := bufio.NewScanner(a.In)
	scanner.Buffer(nil, maxInputLine)
	out := bufio.NewWriter(a.Out)
	number := 0
	for scanner.Scan() {
		number++
		line := bytes.TrimSpace(scanner.Bytes())
		if len(line) == 0 {
			continue
		}
		made, err := turn(line)
		if err == nil {
			err = printJSON(out, made)
		}
		if err != nil {
			return errors.Join(out.Flush(), usage(fmt.Errorf("line %d: %w", number, err)))
		}
	}
	return errors.Join(scanner.Err(), out.Flush())
}

// readLine reads one JSON object with the members of a struct and no others; its error quotes nothing.
func readLine(line []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil || decoder.More() {
		return errors.New("this is not one JSON object of the members that are expected")
	}
	return nil
}

type collectSendCommand struct {
	Collection string `arg:"" help:"The name of the collection."`
	File       string `arg:"" help:"What collect randomize printed." type:"existingfile"`
	gatewayFlags
}

// maxBatch bounds a batch below what the gateway takes: 1 MiB.
const maxBatch = 1 << 20

func (c *collectSendCommand) ask(ctx context.Context, a *app, client *api.Client) error {
	file, err := os.Open(c.File)
	if err != nil {
		return usage(err)
	}
	defer file.Close()
	total := &api.ReportsTaken{Refused: []api.RefusedReport{}}
	before := 0 // lines of earlier batches
	err = batches(file, func(batch []byte, lines int) error {
		answer, err := client.SendReports(ctx, c.Collection, bytes.NewReader(batch))
		if err != nil {
			return err
		}
		total.Taken += answer.Taken
		total.Repeated += answer.Repeated
		for _, r := range answer.Refused {
			total.Refused = append(total.Refused, api.RefusedReport{Line: before + r.Line, Reason: r.Reason})
		}
		before += lines
		return nil
	})
	if said, err := a.said(c.JSON, total, err); said {
		return err
	}
	fmt.Fprintf(a.Out, " %d reports taken, %d again, %d refused\n", total.Taken, total.Repeated, len(total.Refused))
	for _, r := range total.Refused {
		fmt.Fprintf(a.Out, " line %d: %s\n", r.Line, r.Reason)
	}
	return nil
}

// batches hands on lines, as many at a time as the gateway takes.
func batches(from io.Reader, send func(batch []byte, lines int) error) error {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, maxInputLine)
	var batch []byte
	lines := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := send(batch, lines)
		batch, lines = nil, 0
		return err
	}
	for scanner.Scan() {
		if line := scanner.Bytes(); len(batch)+len(line)+1 > maxBatch || lines == collect.MaxLines {
			if err := flush(); err != nil {
				return err
			}
		}
		batch, lines = append(append(batch, scanner.Bytes()...), '\n'), lines+1
	}
	return errors.Join(scanner.Err(), flush())
}

type collectEstimateCommand struct {
	Collection string  `arg:"" help:"The name of the collection."`
	Round      int64   `default:"1" help:"Of which round." placeholder:"N"`
	Confidence float64 `default:"0.95" help:"Level of the intervals." placeholder:"P"`
	gatewayFlags
}

func (c *collectEstimateCommand) ask(ctx context.Context, a *app, client *api.Client) error {
	answer, err := client.EstimateCollection(ctx, c.Collection, c.Round, c.Confidence)
	if said, err := a.said(c.JSON, answer, err); said {
		return err
	}
	what := map[string]string{"choice": "value", "number": "mean of", "vector": "mean of"}[answer.Kind]
	t := &table{grouped: a.terminal}
	t.header(what, "estimate", "± sd", "from", "to")
	for _, e := range answer.Estimates {
		t.row(cmp.Or(e.Of, "the number"), figure(e.Estimate), figure(e.SD), down.figure(e.Interval[0]), up.figure(e.Interval[1]))
	}
	t.write(a.Out)
	fmt.Fprintf(a.Out, " round %d: %d reports by %s at epsilon %s; level %s\n", answer.Round, answer.Reports, answer.Mechanism, answer.Epsilon,
		percent(answer.Confidence))
	return nil
}

// figure is a number with four digits.
func figure(x float64) string { return nearest.figure(x) }
