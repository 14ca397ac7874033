package fault

import "strings"

// Function names of other systems, with the form that means the same here. A name that is close to one of PostgreSQL's often means
// something else: COUNTIF(x) is no count(x).

// FormOf is how a function of another system is written here, with $1, $2, ... for its arguments; ok is false for names that are not known,
// and where the form depends on more than the arguments.
func FormOf(name string, arguments int) (form string, ok bool) {
	forms := map[string]map[int]string{
		"countif": {1: "count(*) FILTER (WHERE $1)"}, "count_if": {1: "count(*) FILTER (WHERE $1)"},
		"sumif": {2: "sum($1) FILTER (WHERE $2)"}, "sum_if": {2: "sum($1) FILTER (WHERE $2)"},
		"avgif": {2: "avg($1) FILTER (WHERE $2)"}, "avg_if": {2: "avg($1) FILTER (WHERE $2)"},
		"iff": {3: "CASE WHEN $1 THEN $2 ELSE $3 END"}, "iif": {3: "CASE WHEN $1 THEN $2 ELSE $3 END"},
		"if":          {3: "CASE WHEN $1 THEN $2 ELSE $3 END"},
		"safe_divide": {2: "(($1)::double precision / nullif($2, 0))"}, "div0null": {2: "(($1) / nullif($2, 0))"},
		"approx_count_distinct": {1: "count(DISTINCT $1)"}, "approx_distinct": {1: "count(DISTINCT $1)"}, "uniq": {1: "count(DISTINCT $1)"},
		"count_distinct":    {1: "count(DISTINCT $1)"},
		"approx_percentile": {2: "percentile_cont($2) WITHIN GROUP (ORDER BY $1)"},
		"approx_quantile":   {2: "percentile_cont($2) WITHIN GROUP (ORDER BY $1)"},
		"nvl":               {2: "coalesce($1, $2)"}, "ifnull": {2: "coalesce($1, $2)"}, "isnull": {1: "(($1) IS NULL)", 2: "coalesce($1, $2)"},
		"nvl2": {3: "CASE WHEN $1 IS NOT NULL THEN $2 ELSE $3 END"}, "zeroifnull": {1: "coalesce($1, 0)"}, "nullifzero": {1: "nullif($1, 0)"},
		"mid": {2: "substr($1, $2)", 3: "substr($1, $2, $3)"}, "locate": {2: "strpos($2, $1)"},
		"len": {1: "length($1)"}, "ucase": {1: "upper($1)"}, "lcase": {1: "lower($1)"}, "charindex": {2: "strpos($2, $1)"},
		"instr": {2: "strpos($1, $2)"},
		"mean":  {1: "avg($1)"}, "average": {1: "avg($1)"}, "std": {1: "stddev_pop($1)"}, "stdev": {1: "stddev($1)"}, "var": {1: "variance($1)"},
		"stdevp": {1: "stddev_pop($1)"}, "varp": {1: "var_pop($1)"},
		"truncate": {1: "trunc($1)", 2: "trunc($1, $2)"}, "square": {1: "power($1, 2)"}, "log2": {1: "(ln($1) / ln(2))"},
		"curdate": {0: "current_date"}, "today": {0: "current_date"}, "getdate": {0: "current_date"}, "sysdate": {0: "current_date"},
		"getutcdate": {0: "current_date"},
		"to_varchar": {2: "to_char($1, $2)"}, "trunc_date": {2: "date_trunc($2, $1)"},
	}
	for _, part := range []string{"year", "quarter", "month", "day", "hour", "minute"} {
		forms[part] = map[int]string{1: "extract(" + part + " FROM $1)"}
	}
	form, ok = forms[strings.ToLower(name)][arguments]
	return form, ok
}

// wholeModel is the hint for MADlib's models.
const wholeModel = "a model is a whole statement: SELECT linregr(y, ARRAY[1, x1, x2]) FROM t WHERE c, logregr with a y of 0 or 1, or " +
	"SELECT kmeans(ARRAY[x1, x2], 4) FROM t"

// elsewhere is the hint for a function of another system, or for one of PostgreSQL's that is not taken; "" for others.
func elsewhere(name string) string {
	hints := map[string]string{
		"datediff":      "write the days from a to b as b::date - a::date, and a time between two as extract(epoch FROM b - a), in seconds",
		"date_diff":     "write the days from b to a as a::date - b::date, and a time between two as extract(epoch FROM a - b), in seconds",
		"timestampdiff": "write the days from a to b as b::date - a::date, and a time between two as extract(epoch FROM b - a), in seconds",
		"dateadd":       "write x + INTERVAL '3 days'", "date_add": "write x + INTERVAL '3 days'", "date_sub": "write x - INTERVAL '3 days'",
		"timestamp_trunc": "write date_trunc('day', x)",
		"date_format":     "write to_char(x, 'YYYY-MM')", "format_date": "write to_char(x, 'YYYY-MM')",
		"strftime": "write to_char(x, 'YYYY-MM')", "format": "write to_char(x, 'YYYY-MM') of a time, and 'a' || x of a text",
		"datepart": "write extract(month FROM x)", "dayofweek": "write extract(dow FROM x), in which Sunday is 0, or extract(isodow FROM x)",
		"weekday": "write extract(dow FROM x), in which Sunday is 0, or extract(isodow FROM x)", "dayname": "write to_char(x, 'FMDay')",
		"monthname": "write to_char(x, 'FMMonth')",
		"decode":    "write CASE x WHEN 1 THEN 'a' ELSE 'b' END",
		"any_value": "no row's own value is shown: add it to GROUP BY, or take min or max",
		"first":     "no row's own value is shown: take min or max", "last": "no row's own value is shown: take min or max",
		"listagg":      "it would list the values of single rows; group by the column and count",
		"group_concat": "it would list the values of single rows; group by the column and count",
		"random":       "a query is computed from rows and constants alone", "rand": "a query is computed from rows and constants alone",
		"regexp_like": "write x ~ 'pattern'", "regexp_contains": "write x ~ 'pattern'", "contains": "write x LIKE '%part%'",
		"linregr": wholeModel, "logregr": wholeModel, "kmeans": wholeModel, "linregr_train": wholeModel, "logregr_train": wholeModel,
		"ratio_to_report": "write sum(x) / sum(sum(x)) OVER ()", "concat_ws": "write a || '-' || b, which is NULL where one of them is",
		"octet_length": "char_length(x) counts characters; bytes are not counted",
		"regexp_count": "write x ~ 'pattern', which is true from one match on",
		"to_number":    "a text that is no number would fail: texts are compared and grouped as they are",
	}
	if hint := hints[strings.ToLower(name)]; hint != "" {
		return hint
	}
	var all []string
	for arguments := range 4 {
		if form, ok := FormOf(name, arguments); ok {
			all = append(all, strings.NewReplacer("$1", "a", "$2", "b", "$3", "c").Replace(form)+" for "+strings.ToLower(name)+"("+
				strings.Join([]string{"a", "b", "c"}[:arguments], ", ")+")")
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "write " + strings.Join(all, ", or ")
}
