package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"noisegate.example/api"
	"noisegate.example/deploy/examples/pate/digits"
	"noisegate.example/gateway/auth"
)

// The demo's ensemble: teachers who each learned from 40 generated digits of their own, and what they say of 400 others.
const (
	demoEnsemble = "digits"
	demoTeachers = 250
	demoLessons  = 40
	demoPictures = 400
)

// loadVotes does it as a steward would, over HTTP. Votes of last time (--keep) stay: they are sealed.
func (d *demo) loadVotes(ctx context.Context) error {
	steward := api.NewClient(d.url, d.tokens[auth.Steward])
	return d.step("votes", func() (string, error) {
		if last, err := steward.Ensemble(ctx, demoEnsemble); err == nil && last.State == "sealed" {
			return "votes of last time", nil
		}
		if _, err := steward.DefineEnsemble(ctx, demoEnsemble, api.EnsembleDefinition{Dataset: demoDataset, Teachers: demoTeachers,
			Classes: strings.Split("0123456789", ""), Budget: &api.BudgetLimit{Form: "approx", Epsilon: "6", Delta: "5e-7"},
			Sanitise: &api.SanitiseParameters{Order: "26", SigmaSS: "12", Delta: "1e-7"}}); err != nil {
			return "", err
		}
		teachers := digits.Teachers(demoTeachers, digits.Generate(demoTeachers*demoLessons, 1))
		votes := digits.NPY(digits.Votes(teachers, digits.Generate(demoPictures, 2)))
		if _, err := steward.LoadVotes(ctx, demoEnsemble, "application/x-npy", "labels_teacher_major", bytes.NewReader(votes)); err != nil {
			return "", err
		}
		_, err := steward.SealEnsemble(ctx, demoEnsemble)
		return fmt.Sprintf("votes of %d teachers on %d pictures loaded and sealed", demoTeachers, demoPictures), err
	})
}
