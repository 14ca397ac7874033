package catalog

import (
	"regexp"
	"strconv"
	"time"
)

// tranche reads how a cap is released over time. Its amount is in the currency of the budget's form, which [decoder.checkForm] looks at.
func (d *decoder) tranche(n *node) *Tranche {
	t := &Tranche{}
	d.fields(n, "a tranche", map[string]func(*node){
		"every":   func(n *node) { t.Every = d.duration(n, "every", time.Minute, 3660*24*time.Hour) },
		"epsilon": func(n *node) { t.Epsilon = d.amount(n, "epsilon", minLoss, strconv.Itoa(maxEpsilon)) },
		"rho":     func(n *node) { t.Rho = d.amount(n, "rho", minLoss, strconv.Itoa(maxEpsilon)) },
	})
	return t
}

// rate reads how much may be spent in how short a time.
func (d *decoder) rate(n *node) *Rate {
	r := &Rate{}
	d.fields(n, "a rate", map[string]func(*node){
		"epsilon": func(n *node) { r.Epsilon = d.amount(n, "epsilon", minLoss, strconv.Itoa(maxEpsilon)) },
		"per":     func(n *node) { r.Per = d.duration(n, "per", time.Second, 24*time.Hour) },
	})
	return r
}

// checkSchedule holds tranche and rate against the form.
func (d *decoder) checkSchedule(n *node, b Budget) {
	if t := b.Tranche; t != nil {
		switch {
		case b.Form == "":
			d.problem(n.pos, "", "a tranche releases a cap, and this budget has none")
		case t.Every == 0:
			d.problem(n.pos, "", "a tranche says how often it opens, such as every: 30d")
		case b.Form == ZCDP && (t.Rho == nil || t.Epsilon != nil):
			d.problem(n.pos, "", "a tranche of form zcdp has rho and no epsilon")
		case b.Form != ZCDP && (t.Epsilon == nil || t.Rho != nil):
			d.problem(n.pos, "", "a tranche of form %s has epsilon and no rho", b.Form)
		}
	}
	if r := b.Rate; r != nil {
		switch {
		case b.Form == "":
			d.problem(n.pos, "", "a rate goes with a form")
		case r.Epsilon == nil || r.Per == 0:
			d.problem(n.pos, "", "a rate has epsilon and per, such as {epsilon: 1, per: 1m}")
		}
	}
}

var durationPattern = regexp.MustCompile(`^([1-9][0-9]{0,6})([smhd])$`)

// duration reads a whole number of seconds, minutes, hours or days.
func (d *decoder) duration(n *node, what string, least, most time.Duration) time.Duration {
	got, ok := ParsePeriod(n.text)
	if ok && n.kind != listNode && n.kind != mappingNode && got >= least && got <= most {
		return got
	}
	d.problem(n.pos, "", "%s must be a number of seconds, minutes, hours or days, such as 90s, 1m, 12h or 30d, from %s to %s", what,
		PeriodText(least), PeriodText(most))
	return 0
}

// ParsePeriod reads a whole number of seconds, minutes, hours or days: 90s, 1m, 12h, 30d.
func ParsePeriod(text string) (period time.Duration, ok bool) {
	match := durationPattern.FindStringSubmatch(text)
	if match == nil {
		return 0, false
	}
	count, _ := strconv.Atoi(match[1]) // at most seven digits
	unit := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[match[2]]
	period = time.Duration(count) * unit
	return period, period/unit == time.Duration(count)
}

// PeriodText writes a period of whole seconds as [ParsePeriod] reads it.
func PeriodText(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0:
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	case d%time.Minute == 0:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	default:
		return strconv.Itoa(int(d/time.Second)) + "s"
	}
}
