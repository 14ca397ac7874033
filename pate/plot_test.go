package pate

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPlotIsWellFormed: the picture is XML, every line's points lie within it, and lines that depend on votes are dashed.
func TestPlotIsWellFormed(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	table := tableOf(t, invented(300, 4, 100))
	for _, s := range []Settings{
		{Mode: LNMax, NoiseScale: "10"}, {Mode: GNMax, Sigma: "15"}, {Mode: Gumbel, Gamma: "0.05"},
		{Mode: Confident, Threshold: "80", Sigma1: "30", Sigma2: "15"},
	} {
		a, err := modeOf(t, table.Ensemble(), s).Analyse(table, AnalysisParameters{Delta: 1e-5, Exact: true, Points: 7,
			Orders: []float64{2, 4, 8, 16}})
		if err != nil {
			t.Fatal(err)
		}
		if want := []int{43, 86, 129, 172, 215, 258, 300}; !slices.Equal(a.Points, want) {
			t.Errorf("%s: points %v, want %v", s.Mode, a.Points, want)
		}
		secret, dashed, polylines := 0, 0, 0
		for _, l := range a.Lines {
			if l.Secret {
				secret++
			}
			if expected := s.Mode == Confident; l.Secret != (l.Method.Secret() || expected) {
				t.Errorf("%s: %s is secret: %v", s.Mode, l.Method, l.Secret)
			}
			if !slices.IsSorted(l.Epsilon) {
				t.Errorf("%s: %s falls: %v", s.Mode, l.Method, l.Epsilon)
			}
		}
		decoder := xml.NewDecoder(strings.NewReader(string(a.SVG())))
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", s.Mode, err)
			}
			start, ok := token.(xml.StartElement)
			if !ok || start.Name.Local != "polyline" {
				continue
			}
			polylines++
			for _, attribute := range start.Attr {
				switch attribute.Name.Local {
				case "stroke-dasharray":
					dashed++
				case "points":
					checkPoints(t, attribute.Value)
				}
			}
		}
		if polylines != len(a.Lines) || dashed != secret {
			t.Errorf("%s: %d lines, %d dashed; want %d and %d", s.Mode, polylines, dashed, len(a.Lines), secret)
		}
	}
}

func checkPoints(t *testing.T, points string) {
	t.Helper()
	for _, point := range strings.Fields(points) {
		x, y, _ := strings.Cut(point, ",")
		px, errX := strconv.ParseFloat(x, 64)
		py, errY := strconv.ParseFloat(y, 64)
		if errX != nil || errY != nil || px < plotLeft || px > plotWidth-plotRight || py < plotTop || py > plotHeight-plotBottom {
			t.Errorf("the point %s is outside", point)
		}
	}
}

func TestTicksAreRound(t *testing.T) {
	for end, want := range map[float64][]float64{
		1: {0, 0.2, 0.4, 0.6, 0.8, 1}, 3.3: {0, 1, 2, 3}, 640: {0, 200, 400, 600}, 0.07: {0, 0.02, 0.04, 0.06},
	} {
		if got := ticks(end, 0); !slices.Equal(got, want) {
			t.Errorf("ticks up to %g: %v, want %v", end, got, want)
		}
	}
}

// TestPlotOfOneQuery: a run of a single query is a dot for each method, above the one whole number that there is.
func TestPlotOfOneQuery(t *testing.T) {
	table := tableOf(t, invented(1, 4, 100))
	a, err := modeOf(t, table.Ensemble(), Settings{Mode: GNMax, Sigma: "15"}).Analyse(table, AnalysisParameters{Delta: 1e-5})
	if err != nil {
		t.Fatal(err)
	}
	if dots := strings.Count(string(a.SVG()), "<circle "); dots != len(a.Lines) {
		t.Errorf("%d dots for %d lines", dots, len(a.Lines))
	}
	if got := ticks(1, 1); !slices.Equal(got, []float64{0, 1}) {
		t.Errorf("ticks at %v", got)
	}
}
