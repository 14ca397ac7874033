package each

import (
	"strconv"
	"testing"
)

// Each analyst has a memory of their own, until so many others asked since that there is no room.
func TestEachAnalystHasAMemory(t *testing.T) {
	var a Analyst[int]
	*a.Of("ana") = 7
	for i := range most - 1 {
		if got := *a.Of(strconv.Itoa(i)); got != 0 {
			t.Fatalf("somebody new finds %d", got)
		}
	}
	if got := *a.Of("ana"); got != 7 {
		t.Errorf("ana finds %d, want 7", got)
	}
	*a.Of("bob") = 8 // replaces "0", who asked longest ago
	if got := *a.Of("ana"); got != 7 || len(a.by) != most {
		t.Errorf("ana finds %d among %d, want 7 among %d", got, len(a.by), most)
	}
	if _, known := a.by["0"]; known {
		t.Error("who asked longest ago is remembered")
	}
}
