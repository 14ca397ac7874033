package pate

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Sizes of the plot, in user units.
const (
	plotWidth, plotHeight                    = 760.0, 420.0
	plotLeft, plotRight, plotTop, plotBottom = 56.0, 214.0, 44.0, 48.0
	labelHeight                              = 15.0
	plotInk, plotGrid                        = "#7a7a7a", "#7a7a7a40" // both visible on white and on black
)

// colourOf are hues that people with any colour vision tell apart, on light and dark grounds (Okabe, Ito 2008).
func colourOf(m Method) string {
	switch m {
	case PureComposition:
		return "#999999"
	case StrongComposition:
		return "#b5651d"
	case MomentsIndependent, ClassicIndependent:
		return "#e69f00"
	case TightIndependent:
		return "#d55e00"
	case ExactGaussian, LatticePLD:
		return "#cc79a7"
	case MomentsDependent:
		return "#56b4e9"
	case ClassicDependent:
		return "#0072b2"
	case TightDependent:
		return "#009e73"
	case ExactLocal:
		return "#8a6de9"
	default:
		return plotInk
	}
}

// SVG draws ε against the number of queries, a line for each method; dashed lines depend on votes. The picture is as secret as the
// analysis.
func (a *Analysis) SVG() []byte {
	p := newPlot(a)
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="system-ui, sans-serif" font-size="12" fill="%s">`,
		plotWidth, plotHeight, plotInk)
	p.printf(`<title>ε of %s labels against the number of queries</title>`, a.Mode.Mode)
	p.printf(`<text x="%g" y="20" font-size="14">%s</text>`, plotLeft, a.caption())
	p.axes()
	for _, l := range a.Lines {
		if len(a.Points) == 1 {
			p.printf(`<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, p.x(p.queries), p.y(min(l.Total(), p.epsilon)), colourOf(l.Method))
			continue
		}
		dash := ""
		if l.Secret {
			dash = ` stroke-dasharray="6 3"`
		}
		p.printf(`<polyline fill="none" stroke="%s" stroke-width="2"%s points="%s"/>`, colourOf(l.Method), dash, p.points(l))
	}
	p.labels()
	p.printf(`<text x="%g" y="%g" font-size="11">dashed: depends on votes, not to be published</text>`, plotLeft, plotHeight-6)
	p.printf(`</svg>`)
	return p.out.Bytes()
}

// caption is what the plot is about, in one line.
func (a *Analysis) caption() string {
	var parts []string
	for _, f := range a.Mode.fields() {
		if f.text != "" {
			parts = append(parts, strings.ReplaceAll(f.name, "_", " ")+" "+f.text)
		}
	}
	return fmt.Sprintf("%s, %s: ε at δ = %g", a.Mode.Mode, strings.Join(parts, ", "), a.Delta)
}

type plot struct {
	a                *Analysis
	out              bytes.Buffer
	queries, epsilon float64 // at the ends of the axes
}

// newPlot chooses the axes. Lines that would squeeze the others below a tenth of the height run out of the picture.
func newPlot(a *Analysis) *plot {
	p := &plot{a: a, queries: float64(a.Points[len(a.Points)-1])}
	least := math.Inf(1)
	for _, l := range a.Lines {
		least = min(least, l.Total())
	}
	for _, l := range a.Lines {
		if total := l.Total(); total <= 10*least || p.epsilon == 0 {
			p.epsilon = max(p.epsilon, min(total, 10*least))
		}
	}
	p.epsilon = max(p.epsilon*1.05, 1e-9)
	return p
}

func (p *plot) printf(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

func (p *plot) x(queries float64) float64 {
	return plotLeft + queries/p.queries*(plotWidth-plotLeft-plotRight)
}

func (p *plot) y(epsilon float64) float64 {
	return plotHeight - plotBottom - epsilon/p.epsilon*(plotHeight-plotTop-plotBottom)
}

// axes draws ticks at round numbers.
func (p *plot) axes() {
	for _, tick := range ticks(p.epsilon, 0) {
		y := p.y(tick)
		p.printf(`<path d="M%g %.1fH%g" stroke="%s"/>`, plotLeft, y, plotWidth-plotRight, plotGrid)
		p.printf(`<text x="%g" y="%.1f" text-anchor="end">%g</text>`, plotLeft-8, y+4, tick)
	}
	for _, tick := range ticks(p.queries, 1) {
		p.printf(`<text x="%.1f" y="%g" text-anchor="middle">%g</text>`, p.x(tick), plotHeight-plotBottom+18, tick)
	}
	p.printf(`<text x="%g" y="%g" text-anchor="end">queries</text>`, plotWidth-plotRight, plotHeight-plotBottom+34)
}

// ticks are about five round numbers from 0 to the end, at least so far apart.
func ticks(end, least float64) []float64 {
	step := math.Pow(10, math.Floor(math.Log10(end/5)))
	for _, times := range []float64{1, 2, 5, 10} {
		if step*times >= end/6 {
			step *= times
			break
		}
	}
	step = max(step, least)
	var list []float64
	for i := 0; float64(i)*step <= end*(1+1e-9); i++ {
		list = append(list, math.Round(float64(i)*step*1e12)/1e12)
	}
	return list
}

// points are a line's points up to where it leaves the picture.
func (p *plot) points(l Line) string {
	var b strings.Builder
	for i, epsilon := range l.Epsilon {
		if epsilon > p.epsilon {
			break
		}
		fmt.Fprintf(&b, "%.1f,%.1f ", p.x(float64(p.a.Points[i])), p.y(epsilon))
	}
	return strings.TrimSpace(b.String())
}

// labels names the lines to the right, near their ends, from the highest down, without overlap.
func (p *plot) labels() {
	lines := slices.SortedStableFunc(slices.Values(p.a.Lines), func(a, b Line) int { return cmp.Compare(b.Total(), a.Total()) })
	next := plotTop + 4
	for i, l := range lines {
		y := max(next, p.y(min(l.Total(), p.epsilon))+4)
		y = min(y, plotHeight-plotBottom-float64(len(lines)-1-i)*labelHeight) // room for those below
		next = y + labelHeight
		p.printf(`<text x="%g" y="%.1f" fill="%s">%s %.4g</text>`, plotWidth-plotRight+10, y, colourOf(l.Method),
			strings.ReplaceAll(string(l.Method), "_", " "), l.Total())
	}
}
