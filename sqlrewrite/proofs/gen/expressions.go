package gen

import "math/rand/v2"

// ExpressionWriter writes random expressions, by the type that they have.
type ExpressionWriter struct{ Rand *rand.Rand }

func (w ExpressionWriter) pick(all ...string) string { return all[w.Rand.IntN(len(all))] }

// Number is of a numeric type.
func (w ExpressionWriter) Number(depth int) string {
	if depth == 0 {
		return w.pick("n2", "n4", "n8", "wide", "small", "money", "free", "f4", "f8", "speed", "n4", "money", "small", "f8", "grade", "0", "1",
			"-3", "0.5", "2.25", "1e3", "100000")
	}
	x, y := w.Number(depth-1), w.Number(w.Rand.IntN(depth))
	return w.pick(
		"("+x+" + "+y+")", "("+x+" - "+y+")", "("+x+" * "+y+")", "("+x+" / "+y+")", "(- "+x+")",
		"("+w.whole(depth-1)+" % "+w.whole(0)+")", "mod("+w.whole(depth-1)+", "+w.whole(0)+")", "("+w.whole(depth-1)+" / "+w.whole(0)+")",
		"abs("+x+")", "sign("+x+")", "floor("+x+")", "ceil("+x+")", "round("+x+")", "trunc("+x+")",
		"round("+w.decimal(depth-1)+", "+w.pick("0", "1", "-1", "3")+")",
		"trunc("+w.decimal(depth-1)+", 1)", "sqrt(abs("+x+"))", "sqrt("+x+")", "ln("+x+")", "log("+x+")", "exp("+x+")",
		"power("+x+", "+w.pick("0", "1", "2", "3", "-1", "-2")+")",
		"greatest("+x+", "+y+")", "least("+x+", "+y+")", "coalesce("+x+", "+y+")", "nullif("+x+", "+w.whole(0)+")", "greatest("+x+", 1)",
		"least("+x+", 5, "+y+")",
		"CASE WHEN "+w.Condition(depth-1)+" THEN "+x+" ELSE "+y+" END", "CASE "+w.whole(0)+" WHEN 0 THEN "+x+" WHEN 5 THEN 1 END",
		"width_bucket("+x+", 0, 10, 5)", "width_bucket("+x+", 5.5, -1, 3)", "("+x+")::numeric", "("+x+")::float8", "("+x+")::int",
		"("+x+")::bigint", "("+x+")::numeric(6,2)",
		"("+w.Condition(depth-1)+")::int", "length("+w.Text(depth-1)+")", "strpos("+w.Text(depth-1)+", "+w.Text(0)+")",
		"position('b' IN "+w.Text(0)+")",
		"extract("+w.pick("year", "month", "day", "dow", "isodow", "doy", "week", "isoyear", "quarter", "epoch", "decade", "century",
			"millennium")+" FROM "+w.Time(depth-1)+")",
		"extract("+w.pick("hour", "minute", "second", "epoch")+" FROM "+w.moment(depth-1)+")", "date_part('month', "+w.Time(depth-1)+")",
		"("+w.day(depth-1)+" - "+w.day(0)+")", "extract(epoch FROM "+w.interval(depth-1)+")", "div("+w.decimal(depth-1)+", "+w.decimal(0)+")",
	)
}

func (w ExpressionWriter) whole(depth int) string {
	if depth == 0 {
		return w.pick("n2", "n4", "n8", "wide", "small", "grade", "7", "-1", "0", "small", "3000000000")
	}
	return w.pick("("+w.whole(depth-1)+" + "+w.whole(0)+")", "("+w.whole(depth-1)+" * "+w.whole(0)+")",
		"("+w.whole(depth-1)+" - "+w.whole(0)+")", "abs("+w.whole(depth-1)+")")
}

func (w ExpressionWriter) decimal(depth int) string {
	if depth == 0 {
		return w.pick("money", "free", "2.5", "money * 1.0", "small::numeric")
	}
	return w.pick("("+w.decimal(depth-1)+" + "+w.decimal(0)+")", "("+w.decimal(depth-1)+" * "+w.decimal(0)+")",
		"("+w.decimal(depth-1)+" / "+w.decimal(0)+")")
}

// Text is a text.
func (w ExpressionWriter) Text(depth int) string {
	if depth <= 0 {
		return w.pick("word", "other", "letter", "letter", "'b'", "''")
	}
	x := w.Text(depth - 1)
	return w.pick("upper("+x+")", "lower("+x+")", "("+x+" || "+w.Text(0)+")", "concat("+x+", small, "+w.Text(0)+")", "trim("+x+")",
		"ltrim("+x+", 'ab')", "rtrim("+x+")",
		"substring("+x+", 2)", "substring("+x+" FROM "+w.pick("-1", "1", "3")+" FOR 2)", "left("+x+", "+w.pick("2", "-1")+")", "right("+x+", 2)",
		"coalesce("+x+", 'none')", "nullif("+x+", 'x')",
		"CASE WHEN "+w.Condition(depth-1)+" THEN "+x+" ELSE 'b' END", "small::text", "greatest("+x+", 'k')", "initcap("+x+")", "day::text")
}

func (w ExpressionWriter) day(depth int) string {
	if depth <= 0 {
		return w.pick("day", "day", "DATE '2022-06-01'", "at::date")
	}
	return w.pick("("+w.day(depth-1)+" + "+w.pick("n4", "small", "7", "(- n2)")+")", "("+w.day(depth-1)+" - small)",
		"coalesce("+w.day(depth-1)+", day)")
}

func (w ExpressionWriter) moment(depth int) string {
	if depth <= 0 {
		return w.pick("at", "atz", "far", "TIMESTAMP '2022-06-01 12:00:00'", "day::timestamp")
	}
	return w.pick("("+w.moment(depth-1)+" + INTERVAL '"+w.pick("1 day", "-3 months", "36 hours 5 minutes", "1 year 2 days")+"')",
		"("+w.day(depth-1)+" - INTERVAL '1 hour')",
		"date_trunc('"+w.pick("second", "minute", "hour", "day", "week", "month", "quarter", "year")+"', "+w.Time(depth-1)+")")
}

// Time is a date or a moment.
func (w ExpressionWriter) Time(depth int) string {
	if w.Rand.IntN(2) == 0 {
		return w.day(depth)
	}
	return w.moment(depth)
}

func (w ExpressionWriter) interval(depth int) string {
	return w.pick("("+w.moment(depth)+" - "+w.moment(0)+")", "("+w.moment(depth)+" - day)", "INTERVAL '2 days'",
		"age("+w.moment(depth)+", day)",
		"(at - far + INTERVAL '1 month')")
}

// Condition is a truth value.
func (w ExpressionWriter) Condition(depth int) string {
	if depth <= 0 {
		return w.pick("flag", "n4 > 3", "f8 < 0.5", "word LIKE 'a%'", "NOT flag")
	}
	return w.pick("("+w.Number(depth-1)+" "+w.pick("<", ">=", "=", "<>")+" "+w.Number(0)+")", "("+w.Number(depth-1)+" IN (0, 1, 2.5))",
		"("+w.Number(depth-1)+" IS NULL)",
		"("+w.Text(depth-1)+" "+w.pick("=", "<")+" "+w.Text(0)+")", "("+w.Text(depth-1)+" LIKE '%b%')",
		"("+w.Time(depth-1)+" > DATE '2022-03-01')",
		"("+w.interval(depth-1)+" > INTERVAL '10 days')", "("+w.Number(depth-1)+" IS DISTINCT FROM "+w.Number(0)+")",
		"("+w.Number(depth-1)+" BETWEEN 0 AND 5)", "starts_with("+w.Text(depth-1)+", 'a')")
}
