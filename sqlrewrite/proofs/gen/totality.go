package gen

import (
	"math/rand/v2"
	"strings"
)

// The table of the totality fuzz has the columns of the random expressions and of the types that they lack.
const (
	ExtremeTables = ErrorFreeTables + `
  code   char
  pad    char
  feel   enum(a,bb,c)
  other_feel enum(a,bb,c)
  token  uuid
  dec    numeric(5,5)
  huge   numeric(1000,0)`
	ExtremeDDL = `
CREATE TYPE public.mood AS ENUM ('a', 'bb', 'c');
ALTER TABLE public.t ADD code character(5), ADD pad bpchar, ADD feel public.mood, ADD other_feel public.mood, ADD token uuid, ADD dec numeric(5,5), ADD huge numeric(1000,0);
UPDATE public.t SET code = (ARRAY['a', 'ab  ', '', 'é~x', NULL])[1 + abs(id) % 5], pad = (ARRAY['a', 'ab  ', '', repeat('x ', 20000), NULL])[1 + abs(id) % 5],
  feel = (ARRAY['a', 'bb', 'c', NULL]::public.mood[])[1 + abs(id) % 4], other_feel = (ARRAY['c', NULL, 'a']::public.mood[])[1 + abs(id) % 3],
  token = (ARRAY['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff', NULL]::uuid[])[1 + abs(id) % 3],
  dec = (ARRAY[0.99999, -0.99999, 0, 'NaN', NULL]::numeric[])[1 + abs(id) % 5],
  huge = (ARRAY[1e999, -1e999, 0, 1, 'NaN', NULL]::numeric[])[1 + abs(id) % 6];`
)

// TotalityGrammar are the forms of expressions by their kind: a name in braces stands for an expression of that kind that is one level less
// deep, one in angle brackets for one of the least depth, which is of the first group.
var TotalityGrammar = map[string][2][]string{
	"number": {
		{"n2", "n4", "n8", "wide", "small", "money", "free", "f4", "f8", "speed", "grade", "huge", "dec", "n2::float8", "free::float8",
			"speed::numeric", "wide::float8", "<constant>", "<constant>", "7", "0.5"},
		{
			"({number} + {number})", "({number} - {number})", "({number} * {number})", "({number} / {number})", "(- {number})",
			"({number} % {number})", "({whole} / {whole})", "({whole} % {whole})", "abs({number})", "sign({number})",
			"floor({number})", "ceil({number})", "round({number})", "trunc({number})", "round({number}::numeric, <places>)",
			"trunc({number}::numeric, <places>)",
			"sqrt({number})", "ln({number})", "log({number})", "exp({number})", "exp(exp({number}))", "power({number}, <power>)",
			"({number} ^ <power>)",
			"(ln({number}) * {number})", "((exp({number}) - exp({number})) * {number})", "(sqrt({number}) * sqrt({number}))",
			"(1 / ({number} - {number}))", "(({number} / {number}) / {number})", "({number} / <constant>)", "(<constant> / {number})",
			"({number} * <constant>)", "(({number} - {number}) * ({number} - <constant>))",
			"width_bucket({number}, <constant>, <constant>, <count>)", "(width_bucket({number}::float8, <constant>, <constant>, 10) - 10)",
			"(width_bucket(f8, -1.7e308, 1.7e308, 10) * 2147483647)", "width_bucket({number}, 0, 10, 5)",
			"({number})::smallint", "({number})::int", "({number})::bigint", "({number})::numeric", "({number})::real", "({number})::float8",
			"({number})::numeric(6,2)", "({number})::numeric(100,50)", "({number})::numeric(1,1)", "({number})::numeric(3)",
			"(({number})::float8)::bigint", "(({number})::numeric)::float8", "({number})::float8::numeric(20,19)", "({condition})::int",
			"({condition})::smallint",
			"greatest({number}, {number})", "least({number}, <constant>)", "greatest(<constant>, {number})", "coalesce({number}, {number})",
			"nullif({number}, {number})", "nullif(<whole>, <constant>)", "nullif(<constant>, {number})",
			"CASE WHEN {condition} THEN {number} ELSE {number} END", "CASE <whole> WHEN 0 THEN {number} WHEN <constant> THEN <constant> END",
			"mod({number}, {number})", "div({number}, {number})", "div(<constant>, <constant>)",
			"({day} - {day})", "extract(<field> FROM {time})", "extract(<clock> FROM {moment})", "date_part(<part>, {time})",
			"extract(epoch FROM {interval})", "extract(<piece> FROM {interval})",
			"(extract(year FROM {time}) * 2147483647)", "(extract(epoch FROM {time}) * <constant>)",
			"length({text})", "(length({text}) * 2147483647)", "strpos({text}, {text})", "position('b' IN {text})",
		},
	},
	"key": { // of few values, which policy and text bound
		{"small", "grade", "letter", "flag", "n2", "flag::int", "grade", "letter", "NULL", "2", "2.5", "'bb'", "'a'", "day", "NULL::int"},
		{
			"nullif({key}, {key})", "nullif({key}, {key})", "coalesce({key}, {key})", "coalesce({key}, {key}, {key})",
			"CASE WHEN {test} THEN {key} ELSE {key} END", "CASE WHEN {test} THEN {key} WHEN {test} THEN {key} END",
			"CASE {key} WHEN {key} THEN {key} ELSE {key} END",
			"({key} + {key})", "({key} - {key})", "({key} * {key})", "({key} / {key})", "({key} % {key})", "({key} || {key})", "({key} || '')",
			"abs({key})", "sign({key})", "(- {key})", "left({key}, 1)", "substr({key}, 2)", "split_part({key}, 'b', 2)",
			"replace({key}, 'b', 'a')", "length({key})", "({test})::int", "({key})::text",
			"({key})::varchar(1)",
			"({key})::bigint", "({key})::smallint", "({key})::numeric", "floor({key} / 3.0)", "round({key} * 1.5)", "(({key}) / 2)",
			"trunc({key} / 4.0)", "ceil({key} / 2.5)", "width_bucket({key}, 0, 9, 3)", "greatest({key}, {key})", "least({key}, 3)", "mod({key}, 4)",
			"div({key}, 2)",
			"extract(<field> FROM day)", "date_trunc(<unit>, day)", "extract(year FROM {key})", "(day + {key})", "({test})",
			"to_char(day, <template>)", "to_char(at, <template>)", "to_char({key}, <template>)", "at::date", "date(atz)",
			"date_trunc(<unit>, at)::date", "date_trunc(<unit>, date(day))", "extract(day FROM at - TIMESTAMP '2022-06-01')",
		},
	},
	"test": {{"flag", "NOT flag", "small > 4", "grade IS NULL", "letter = 'a'",
		"small > 11", "n2 <= -200", "n2 IN (3, 32767)", "day > '2031-01-01'"},
		{"({key} = {key})", "({key} < {key})", "({key} <> {key})", "({key} IN ({key}, {key}))", "({key} NOT IN (1, NULL, {key}))",
			"({key} IS NULL)", "({key} IS NOT NULL)", "({key} IS DISTINCT FROM {key})",
			"({key} BETWEEN {key} AND {key})", "({test} AND {test})", "({test} OR {test})", "(NOT {test})", "({test} IS NOT TRUE)",
			"({test} IS FALSE)", "({test} IS UNKNOWN)", "(({key}, {key}) = ({key}, {key}))",
			"(({key}, {key}) IN (({key}, {key}), ({key}, 2)))", "(grade = ANY (ARRAY[1, 2]))", "(letter <> ALL ('{a,bb}'))"}},
	"whole": {{"n2", "n4", "n8", "wide", "small", "grade", "7", "-1", "0", "32767::smallint", "2147483647", "-2147483648",
		"9223372036854775807"}, {"({whole} + {whole})", "({whole} * {whole})", "({whole} - {whole})", "abs({whole})", "({day} - {day})",
		"({number})::int"}},
	"places": {{"0", "1", "-1", "20", "40", "-40"}, nil},
	"power":  {{"0", "1", "2", "3", "10", "-1", "-2", "-10"}, nil},
	"count":  {{"1", "10", "100000"}, nil},
	"field": {{"year", "month", "day", "dow", "isodow", "doy", "week", "isoyear", "quarter", "epoch", "decade", "century", "millennium"},
		nil},
	"clock": {{"hour", "minute", "second", "epoch"}, nil},
	"piece": {{"year", "month", "day", "hour", "minute", "second"}, nil},
	"part":  {{"'month'", "'year'", "'epoch'"}, nil},
	"template": {{"'YYYY-MM'", "'YYYY-MM-DD'", "'Mon YYYY'", "'FMDay'", "'Dy HH24'", "'IYYY-IW'", "'Q/YY'", "'HH12 AM'", "'DDD'", "'D'",
		"'FMMonth FMDD'", "'W WW'", "'HH24:MI'"}, nil},
	"unit": {{"'second'", "'minute'", "'hour'", "'day'", "'week'", "'month'", "'quarter'", "'year'", "'decade'", "'century'",
		"'millennium'"}, nil},
	"constant": {{ // from the ends of every type of numbers, and next to what operations count as their limits
		"32767", "-32768", "2147483647", "-2147483648", "2147483648", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
		"1e18", "0", "1", "-3", "2.25", "1e3",
		"1e40", "-1e40", "1e-20", "1e-40", "0.00000000000000000001", "1e100", "1e150", "-1e150", "1e299", "1e300", "1e301", "1e307", "1e308",
		"1.7e308", "-1.7e308", "1.8e308", "1e310", "-1e310", "1e320",
		"1e-100", "1e-150", "1e-300", "1e-307", "2.3e-308", "5e-324", "1e-320", "0.0", "-0.0", "650", "-100", "650.0000001", "709.78",
		"1.0000000000000002", "0.9999999999999999",
		"1e310::float8", "1.7e308::float8", "-1.7e308::float8", "5e-324::float8", "0::float8", "'NaN'::float8", "'Infinity'::float8",
		"'1e310'::numeric", "1e300::float8", "1e-300::float8", "'NaN'::numeric",
		"'1e310'::numeric::float8", "1e39::real", "1e-60::real", "70000::smallint", "3000000000::int", "1e19::bigint", "1000::numeric(2,1)",
		"NULL", "NULL::int", "NULL::float8", "NULL::numeric",
	}, nil},
	"text": {
		{"word", "other", "letter", "code", "pad", "feel", "other_feel", "token::text", "'ab '", "''", "NULL", "'b'"},
		{
			"({text} || {text})", "({text} || code)", "(pad || {text})", "upper({text})", "lower({text})", "initcap({text})", "upper(feel)",
			"nullif({text}, {text})", "nullif(code, pad)", "nullif(feel, other_feel)", "nullif(feel, 'a')", "coalesce({text}, {text})",
			"coalesce(feel, other_feel)", "greatest({text}, {text})", "least(pad, word)", "concat({text}, small, {text})",
			"concat(feel, code, token)", "CASE WHEN {condition} THEN {text} ELSE {text} END", "CASE WHEN flag THEN feel ELSE other_feel END",
			"CASE feel WHEN 'a' THEN code ELSE 'z' END", "left({text}, 2)", "right({text}, -1)", "substring({text}, 3, 5)",
			"substring({text} FROM -1 FOR 3)", "substr({text}, 1048576, 1048576)", "trim({text})",
			"split_part({text}, 'a', 2)", "split_part({text}, 'ab', -1)",
			"regexp_replace({text}, '(a|b)+', '-', 'gi')", "regexp_replace({text}, 'a*', 'xy', 'g')", "regexp_replace({text}, '[^a]*b$', '')",
			"split_part(code, '', 1)", "replace({text}, 'a', 'bcd')", "replace({text}, 'b', '')", "ltrim({text}, 'ab')", "rtrim({text}, 'x')",
			"({text})::varchar(2)", "({text})::char(3)", "({whole})::varchar(4)",
			"code::text", "feel::text", "(flag)::text", "n8::text", "({whole})::text", "({day})::text",
			"(extract(year FROM {time}))::text", "(round({number}::numeric(9,2)))::text",
			"to_char({time}, <template>)",
		},
	},
	"condition": {
		{"flag", "n4 > 3", "f8 < 0.5", "word LIKE 'a%'", "NOT flag", "(code ~ '^a')", "(code !~* 'B$')", "(pad ~ '[[:space:]]')",
			"(pad SIMILAR TO 'a%')", "(feel ~ 'b+')", "(feel = other_feel)", "(huge = f8)", "(free < f4)", "(dec = speed)", "(code = pad)",
			"(feel IN ('a', 'c'))"},
		{
			"({number} < {number})", "({number} >= <constant>)", "({number} = {number})", "({number} IN (<constant>, 1, 2.5))", "({number} IS NULL)",
			"({number} BETWEEN {number} AND <constant>)", "({number} IS DISTINCT FROM {number})",
			"({text} = {text})", "({text} < {text})", "({text} LIKE '%b%')", "({text} ILIKE '% ')", "({text} ~ '^(a|b){1,3}')",
			"({text} SIMILAR TO '(a|b)_%')", "({text} IN ('a', 'ab '))", "({text} IS DISTINCT FROM {text})", "starts_with({text}, 'a')",
			"(code IN ('a', 'ab '))", "(feel IS DISTINCT FROM other_feel)", "(token = '00000000-0000-0000-0000-000000000000')", "({time} < {time})",
			"({time} BETWEEN '0001-01-01' AND '9999-12-31')", "({interval} < {interval})", "({interval} = {interval})", "({interval} IS NULL)",
			"({condition} AND {condition})", "({condition} OR {condition})", "(NOT {condition})", "({condition} IS NOT TRUE)",
		},
	},
	"day": {
		{"day", "DATE '2022-06-01'", "at::date", "DATE '0001-01-01'", "DATE '9999-12-31'", "NULL::date"},
		{"({day} + <whole>)", "({day} + {whole})", "({day} - small)", "({day} - {whole})", "({day} + 2147483647)", "({day} - 32767::smallint)",
			"({whole} + {day})", "coalesce({day}, day)", "({moment})::date", "date({time})", "greatest({day}, {day})"},
	},
	"moment": {
		{"at", "atz", "far", "TIMESTAMP '2022-06-01 12:00:00'", "day::timestamp", "TIMESTAMP '0001-01-01 00:00:00'",
			"TIMESTAMP '9999-12-31 23:59:59'", "TIMESTAMPTZ '9999-12-31 23:59:59+00'"},
		{
			"({moment} + {interval})", "({moment} - {interval})", "({interval} + {moment})", "({day} + {interval})", "({day} - <interval>)",
			"date_trunc(<unit>, {time})", "({moment})::timestamptz", "({moment})::timestamp", "({day})::timestamptz",
			"greatest({moment}, {moment})", "CASE WHEN {condition} THEN far ELSE at END", "coalesce({moment}, at)", "nullif({moment}, {moment})",
		},
	},
	"time": {{"<day>", "<moment>"}, {"{day}", "{moment}"}},
	"interval": {
		{"INTERVAL '<span>'", "INTERVAL '<span>'", "INTERVAL '<span>'", "NULL::interval"},
		{
			"({interval} + {interval})", "({interval} - {interval})", "({moment} - {moment})", "({moment} - day)",
			"({moment} - {moment} + INTERVAL '<span>')", "CASE WHEN {condition} THEN {interval} ELSE {interval} END",
			"coalesce({interval}, {interval})", "age({time}, {time})", "age({moment}, {time})",
			"greatest({interval}, {interval})", "least({interval}, <interval>)", "nullif({interval}, {interval})", "({eight} + {interval})",
			"({interval} - {eight})",
		},
	},
	"eight": {{strings.Repeat("INTERVAL '<span>' + ", 7) + "INTERVAL '<span>'",
		strings.Repeat("INTERVAL '-12903 months 400000 days' + ", 7) + "INTERVAL '-12903 months 400000 days'"}, nil},
	"span": {{"1 day", "-3 months", "36 hours 5 minutes", "1 year 2 days", "9600000 hours", "-9600000 hours", "-12903 months 400000 days",
		"12903 months -400000 days", "400000 days", "-400000 days", "1 month", "1 microsecond",
		"34559999999999999 microseconds", "33 years 2 months 1 day 01:02:03"}, nil},
}

// RandomExpression writes a random expression.
func RandomExpression(r *rand.Rand, kind string, depth int) string {
	forms := TotalityGrammar[kind]
	group := forms[0]
	if depth > 0 && forms[1] != nil && r.IntN(8) > 0 {
		group = forms[1]
	}
	form := group[r.IntN(len(group))]
	var b strings.Builder
	for {
		i := strings.IndexAny(form, "{<")
		if i < 0 {
			return b.String() + form
		}
		b.WriteString(form[:i])
		end := strings.IndexAny(form[i:], "}> ")
		name := ""
		if end > 0 {
			name = form[i+1 : i+end]
		}
		if _, known := TotalityGrammar[name]; !known { // an operator, or a repetition of a pattern
			b.WriteByte(form[i])
			form = form[i+1:]
			continue
		}
		deeper := depth - 1
		if form[i] == '<' {
			deeper = 0
		}
		b.WriteString(RandomExpression(r, name, deeper))
		form = form[i+end+1:]
	}
}
