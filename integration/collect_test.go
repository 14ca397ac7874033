package integration

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"noisegate.example/internal/testfiles"
)

// TestCommandsOfCollections runs the commands of docs/collect.md, as they stand there, against a gateway. The estimates of 3,000 devices
// are then within 7 standard deviations of the truth: a right gateway fails that less than once in 10^10.
func TestCommandsOfCollections(t *testing.T) {
	t.Parallel()
	s := newStack(t, pateDataset())
	var script strings.Builder
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(read(t, "../docs/collect.md"), -1) {
		script.WriteString(block[1])
	}
	dir := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(dir, "noisegate")); err != nil {
		t.Fatal(err)
	}
	adult := testfiles.FetchedOr(t, "data/adult/adult.csv")
	if err := os.Symlink(adult, filepath.Join(dir, "adult.csv")); err != nil {
		t.Fatal(err)
	}
	people, err := csv.NewReader(strings.NewReader(read(t, adult))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	truth := map[string]float64{}
	for _, person := range people[1:3001] {
		truth[person[6]]++
	}
	run := func(script string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-e", "-c", script)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "NOISEGATE_URL=" + s.url, "STEWARD_TOKEN=" + s.token(t, "sam", "steward"),
			"COLLECTOR_TOKEN=" + s.token(t, "cole", "collector"), "ANALYST_TOKEN=" + s.token(t, "ana", "analyst")}
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v\n%s%s", err, &out, &errs)
		}
		return out.String()
	}
	out := run(script.String())
	for _, want := range []string{" 3000 reports taken, 0 again, 0 refused\n", " 0 reports taken, 3000 again, 0 refused\n",
		" round 1: 3000 reports by krr at epsilon 1; level 95 %\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	for value, people := range truth {
		row := regexp.MustCompile(`(?m)^ ` + value + ` +\| +(\S+) \| +(\S+) \|`).FindStringSubmatch(out)
		if row == nil {
			t.Fatalf("no %s in\n%s", value, out)
		}
		var estimate, sd float64
		if _, err := fmt.Sscan(row[1]+" "+row[2], &estimate, &sd); err != nil || sd <= 0 || math.Abs(estimate-people) > 7*sd {
			t.Errorf("%s: %g ± %g, want %g (%v)", value, estimate, sd, people, err)
		}
	}
	// A device that changes its mind is refused, and not named.
	again := run(`export NOISEGATE_TOKEN="$COLLECTOR_TOKEN"
noisegate collect randomize --spec client.json < private.ndjson > others.ndjson
noisegate collect send marital others.ndjson`)
	if !strings.Contains(again, "second-report") || strings.Contains(again, "phone-") || !strings.Contains(again, " 0 reports taken, ") {
		t.Errorf("other reports of the same devices: %s", again)
	}
	if log := s.log.String(); strings.Contains(log, "phone-") {
		t.Error("the gateway's log names a device")
	}
}
