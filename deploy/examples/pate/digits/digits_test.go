package digits

import (
	"os"
	"slices"
	"strings"
	"testing"

	"noisegate.example/internal/testfiles"
)

// TestTeachersTogetherKnowMore: teachers who saw little each vote well together; and all of it is the same each time.
func TestTeachersTogetherKnowMore(t *testing.T) {
	private, public := Generate(4000, 1), Generate(500, 2)
	teachers := Teachers(100, private)
	votes := Votes(teachers, public)
	right := 0
	for i, label := range Plurality(votes) {
		if label == public[i].Label {
			right++
		}
	}
	alone, together := teachers[0].Accuracy(public), float64(right)/float64(len(public))
	t.Logf("one teacher %.3f, all together %.3f", alone, together)
	if !(alone > 0.3 && together > 0.8 && together > alone+0.1) {
		t.Errorf("one teacher %.3f, all together %.3f", alone, together)
	}
	if again := Generate(500, 2); !slices.Equal(again, public) || Train(private[:40]).weights != Train(private[:40]).weights {
		t.Error("the same seed gives other digits, or the same digits another model")
	}
}

func TestReadOfRealDigits(t *testing.T) {
	file, err := os.Open(testfiles.Fetched(t, "data/optdigits/optdigits_tra.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	list, err := Read(file)
	if err != nil || len(list) != 3823 {
		t.Fatal(len(list), err)
	}
	if accuracy := Train(list[:2000]).Accuracy(list[2000:]); accuracy < 0.9 {
		t.Errorf("accuracy %.3f", accuracy)
	}
	for _, text := range []string{"a\n1\n", strings.Repeat("p,", 64) + "label\n" + strings.Repeat("x,", 64) + "1\n",
		strings.Repeat("p,", 64) + "label\n" + strings.Repeat("1,", 64) + "11\n"} {
		if _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%.20q is read", text)
		}
	}
}
