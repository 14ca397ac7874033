// Command pate is a whole PATE workflow against a running gateway: teachers who each learn from the data of other people, their votes on
// public pictures, labels bought under a budget, and a student that learns from those labels alone.
//
//	NOISEGATE_STEWARD_TOKEN=... NOISEGATE_ML_TOKEN=... go run ./deploy/examples/pate --url http://127.0.0.1:8080
//
// The dataset and the buyer need budgets for both runs: in the demo a steward gives them more, as docs/pate-howto.md says.
//
// It knows the HTTP interface, as any client does. It does not know any other part of Noisegate.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"noisegate.example/api"
	"noisegate.example/deploy/examples/pate/digits"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "pate:", err)
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	url, dataset, data, epsilon, delta string
	teachers, queries, chunk           int
}

func run(ctx context.Context, args []string, env func(string) string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("pate", flag.ContinueOnError)
	flags.StringVar(&o.url, "url", cmp.Or(env("NOISEGATE_URL"), "http://127.0.0.1:8080"), "the gateway; NOISEGATE_URL")
	flags.StringVar(&o.dataset, "dataset", "census", "the dataset whose budget pays")
	flags.StringVar(&o.data, "digits", "", "directory with optdigits_tra.csv and optdigits_tes.csv; without it digits are generated")
	flags.StringVar(&o.epsilon, "epsilon", "8", "budget of each ensemble")
	flags.StringVar(&o.delta, "delta", "1e-5", "delta of the budget")
	flags.IntVar(&o.teachers, "teachers", 50, "how many teachers")
	flags.IntVar(&o.queries, "queries", 600, "how many public pictures the student may have labelled")
	flags.IntVar(&o.chunk, "chunk", 20, "how many labels are bought at a time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	private, public, test, err := load(o)
	if err != nil {
		return err
	}
	w := workflow{options: o, public: public, test: test,
		steward: api.NewClient(o.url, env("NOISEGATE_STEWARD_TOKEN")), ml: api.NewClient(o.url, env("NOISEGATE_ML_TOKEN"))}
	// Each mechanism has separate teachers, with separate people: votes belong to one ensemble, and one account.
	half := len(private) / 2
	w.votes = [][][]byte{digits.Votes(digits.Teachers(o.teachers, private[:half]), public),
		digits.Votes(digits.Teachers(o.teachers, private[half:]), public)}
	w.keys = make([]string, len(public))
	for i := range w.keys {
		w.keys[i] = strconv.Itoa(i) // what rows of an array are called
	}
	return w.compare(ctx, out)
}

// load gives private digits for the teachers, public ones whose labels nobody knows yet, and others to test the student with.
func load(o options) (private, public, test []digits.Digit, err error) {
	if o.data == "" {
		return digits.Generate(200*o.teachers, 1), digits.Generate(o.queries, 2), digits.Generate(1000, 3), nil
	}
	read := func(name string) ([]digits.Digit, error) {
		file, err := os.Open(filepath.Join(o.data, name))
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return digits.Read(file)
	}
	if private, err = read("optdigits_tra.csv"); err != nil {
		return nil, nil, nil, err
	}
	others, err := read("optdigits_tes.csv")
	if err != nil {
		return nil, nil, nil, err
	}
	digits.Shuffle(private)
	digits.Shuffle(others)
	n := min(o.queries, len(others)/2)
	return private, others[:n], others[n:], nil
}

// workflow is one team's work with two sets of votes.
type workflow struct {
	options
	steward, ml  *api.Client
	public, test []digits.Digit
	votes        [][][]byte // of each mechanism's teachers
	keys         []string
}

// result is what came of one mechanism.
type result struct {
	name                   string
	asked, answered, right int
	spent                  string
	student                float64
}

// compare labels the same pictures with each mechanism, under a separate budget, and without privacy, and prints the results.
func (w *workflow) compare(ctx context.Context, out io.Writer) error {
	share := func(s float64) api.Decimal {
		return api.Decimal(strconv.FormatFloat(s*float64(w.teachers), 'f', -1, 64))
	}
	results := []result{w.nonPrivate()}
	for i, ask := range []api.LabelRequest{
		{Mechanism: "lnmax", NoiseScale: share(0.2)},
		{Mechanism: "confident", Threshold: share(0.6), Sigma1: share(0.4), Sigma2: share(0.2)},
	} {
		r, err := w.private(ctx, ask, w.votes[i])
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	source := "generated digits"
	if w.data != "" {
		source = "digits of " + w.data
	}
	fmt.Fprintf(out, "%s: %d teachers for each mechanism, %d public pictures, a budget of (%s, %s) for each mechanism\n\n", source,
		w.teachers, len(w.public), w.epsilon, w.delta)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "labels by\tasked\tanswered\tright\trho spent\tstudent's accuracy")
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.3f\t%s\t%.3f\n", r.name, r.asked, r.answered, float64(r.right)/float64(max(r.answered, 1)), r.spent,
			r.student)
	}
	return t.Flush()
}

// nonPrivate is the student that sees the plurality of votes as it is.
func (w *workflow) nonPrivate() result {
	labels := digits.Plurality(w.votes[0])
	r := w.learn("plurality, no privacy", labels)
	r.asked, r.spent = len(labels), "-"
	return r
}

// private defines an ensemble, loads and seals the votes, buys labels until the budget is used up, and teaches a student with them.
func (w *workflow) private(ctx context.Context, ask api.LabelRequest, votes [][]byte) (result, error) {
	name := "digits-" + ask.Mechanism
	classes := strings.Split("0123456789", "")
	if _, err := w.steward.DefineEnsemble(ctx, name, api.EnsembleDefinition{Dataset: w.dataset, Teachers: int64(w.teachers), Classes: classes,
		Budget: &api.BudgetLimit{Form: "approx", Epsilon: api.Decimal(w.epsilon), Delta: api.Decimal(w.delta)}}); err != nil {
		return result{}, err
	}
	if _, err := w.steward.LoadVotes(ctx, name, "application/x-npy", "labels_teacher_major", bytes.NewReader(digits.NPY(votes))); err != nil {
		return result{}, err
	}
	if _, err := w.steward.SealEnsemble(ctx, name); err != nil {
		return result{}, err
	}
	labels := make([]int, len(w.public))
	for i := range labels {
		labels[i] = -1
	}
	asked := 0
	for asked < len(w.keys) {
		ask.Queries = w.keys[asked:min(asked+w.chunk, len(w.keys))]
		answer, err := w.ml.Labels(ctx, name, ask, "")
		if refused := new(api.Problem); errors.As(err, &refused) && refused.Code == "budget/exhausted" {
			if asked > 0 {
				break
			}
			return result{}, fmt.Errorf("%w; no label was bought: raise the cap of ensemble:%s, which keeps what earlier runs spent, or that "+
				"of the buyer (noisegate budget set %s ensemble:%s --epsilon E)", err, name, w.dataset, name)
		}
		if err != nil {
			return result{}, err
		}
		for i, l := range answer.Labels {
			if l.Label != nil {
				labels[asked+i] = *l.Label
			}
		}
		asked += len(ask.Queries)
	}
	ensemble, err := w.steward.Ensemble(ctx, name) // what all spent is for stewards
	if err != nil {
		return result{}, err
	}
	r := w.learn(ask.Mechanism, labels)
	r.asked, r.spent = asked, string(ensemble.Spent.Rho)
	return r, nil
}

// learn teaches a student with labels; -1 stands for none.
func (w *workflow) learn(name string, labels []int) result {
	r := result{name: name}
	examples := make([]digits.Digit, len(w.public))
	for i, d := range w.public {
		examples[i] = digits.Digit{Pixels: d.Pixels, Label: labels[i]}
		if labels[i] >= 0 {
			r.answered++
		}
		if labels[i] == d.Label {
			r.right++
		}
	}
	r.student = digits.Train(examples).Accuracy(w.test)
	return r
}
