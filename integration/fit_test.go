package integration

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCommandsOfFits runs the commands of docs/fit.md, as they stand there, on the Adult data: what is estimated is affordable, what is
// fitted has intervals, and asking again is free.
func TestCommandsOfFits(t *testing.T) {
	t.Parallel()
	outputs := commandsTwice(t, newStack(t, census(t)), "../docs/fit.md")
	for i, wants := range [][]string{
		{"affordable", "nothing was spent", " intercept ", " education_num "}, {"nothing was spent"},
		{" age ", " to ", "spent rho ", "same answer, free"}, {"nothing spent", " to "},
		{"marital_status=Widowed", "spent rho "}, {"nothing spent"},
		{"right_predictions"}, {"nothing spent"},
		{`\"coefficients\":[{\"name\":\"age\"`, `"replayed":false`}, {`\"coefficients\":[{\"name\":\"age\"`, `"replayed":true`},
	} {
		for _, want := range wants {
			if i >= len(outputs) || !strings.Contains(outputs[i], want) {
				t.Errorf("command %d: %q is missing in %q", i, want, outputs)
			}
		}
	}
	// 0.833 of Adult's people, 0.807 of those who stand in for them: noise of ten times its scale would be another digit.
	for _, output := range outputs[6:8] {
		if !regexp.MustCompile(`\n +0\.8[0-6]\d* \|`).MatchString(output) {
			t.Errorf("other shares of right predictions: %q", output)
		}
	}
}

// commandsTwice runs each block of commands of a page twice, and gives what they print.
func commandsTwice(t *testing.T, s *stack, page string) (outputs []string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(dir, "noisegate")); err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(read(t, page), -1) {
		for range 2 {
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-e", "-c", block[1])
			cmd.Dir = dir
			cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "NOISEGATE_URL=" + s.url, "NOISEGATE_TOKEN=" + s.token(t, "ana", "analyst")}
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Run(); err != nil {
				t.Fatalf("%s: %v\n%s%s", block[1], err, &out, &errs)
			}
			outputs = append(outputs, out.String())
		}
	}
	return outputs
}
