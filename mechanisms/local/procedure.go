package local

// Procedure is what a device does with the step of its value, line by line, for authors of clients. Names are those of [Constant]; the
// draws are those of [Example], in their order. "below n" is a uniform integer from 0 to n-1 of a cryptographic generator.
func (p *Protocol) Procedure() []string {
	const (
		choice = "value: its place in domain, from 0"
		number = "value: round(grid * (x - low) / (high - low)), from 0 to grid; smaller and larger x count as low and high"
		coin   = "draw coin below 2^53, and any below "
	)
	response := func(what, classes, result string) []string {
		return []string{coin + classes, "report " + result + "any if coin / 2^53 < uniform, else " + result + what}
	}
	switch p.parameters.Mechanism {
	case KRR:
		return append([]string{choice}, response("the value", "the size of domain", "")...)
	case SUE, OUE:
		return []string{choice, "for each place of domain, draw coin below 2^53: set if coin / 2^53 < p at the value, < q elsewhere",
			"report the places that are set, ascending"}
	case OLH:
		steps := []string{choice, "draw a and b below prime; hash = ((a * value + b) mod prime) mod g"}
		return append(steps, response("hash", "g", "a, b and ")...)
	case Duchi:
		return append([]string{number, "draw side below grid; end = 1 if side < value, else 0"}, response("end", "2", "")...)
	case Piecewise:
		return []string{number, coin + "cells, and inside below width",
			"report any if coin / 2^53 < uniform, else value + inside"}
	default:
		value := number
		if p.parameters.Kind == Vector {
			value = "values: probabilities in steps of 1/grid, rounded so that the steps add up to grid exactly"
		}
		return []string{value, "draw discrete Laplace noise, P(k) proportional to e^(-|k| / scale), for each number",
			"report each number with its noise; below -reach report -reach, above grid + reach report that"}
	}
}
