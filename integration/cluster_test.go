package integration

import (
	"strings"
	"testing"
)

// TestCommandsOfClusters runs the commands of docs/cluster.md, as they stand there, on the Adult data: what is estimated is affordable,
// there are as many centres as are asked for, and asking again is free.
func TestCommandsOfClusters(t *testing.T) {
	t.Parallel()
	outputs := commandsTwice(t, newStack(t, census(t)), "../docs/cluster.md")
	for i, wants := range [][]string{
		{"affordable", "nothing was spent", "too few"}, {"nothing was spent"},
		{" age ", "\n      4 |", " size", "spent rho ", "same answer, free"}, {"nothing spent", "\n      4 |"},
		{"\n      2 |", "spent rho "}, {"nothing spent"},
	} {
		for _, want := range wants {
			if i >= len(outputs) || !strings.Contains(outputs[i], want) {
				t.Errorf("command %d: %q is missing in %q", i, want, outputs)
			}
		}
	}
}
