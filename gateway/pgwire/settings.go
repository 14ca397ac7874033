package pgwire

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/statement"
)

// The settings that mean something to us.
const (
	setEpsilon     = "noisegate.epsilon"
	setRho         = "noisegate.rho"
	setDelta       = "noisegate.delta"
	setMaxError    = "noisegate.max_error"
	setAtMost      = "noisegate.at_most"
	setUseful      = "noisegate.require_useful"
	setConfidence  = "noisegate.confidence"
	setTogether    = "noisegate.simultaneous"
	setMechanism   = "noisegate.mechanism"
	setMaxGroups   = "noisegate.max_groups"
	setMaxRows     = "noisegate.max_rows"
	setReport      = "noisegate.report"
	setVersion     = "noisegate.version"
	setPlan        = "noisegate.plan"
	setIntervals   = "noisegate.intervals"
	setNotices     = "noisegate.notices"
	setPreview     = "noisegate.preview"
	setBudget      = "noisegate.budget"
	setLastRelease = "noisegate.last_release"

	ownPrefix      = "noisegate."
	setSearchPath  = "search_path"
	setTimeZone    = "timezone"
	setMinMessages = "client_min_messages"
	setApplication = "application_name"
)

// shownVersion is what clients choose their queries by while there is no catalog twin: the oldest version that all of them know
// well and that is still served.
const shownVersion = "15.0"

// maxSetting bounds the value of a setting, in bytes; maxApplication that of application_name, which is logged.
const (
	maxSetting     = 4 << 10
	maxApplication = 64
)

// definition is a setting that exists.
type definition struct {
	name     string // as it is shown
	standard string
	reported bool // a change is told by ParameterStatus
	// check gives the value in its usual spelling; nil: the value is fixed.
	check func(string) (string, bool)
	want  string // what check takes, for the refusal
}

// definitions are all settings, in the order of SHOW ALL. There is no other: data_directory and the like do not exist.
func definitions() []definition {
	list := []definition{
		{name: setEpsilon, check: orEmpty(positive), want: "a positive number, such as 0.05"},
		{name: setRho, check: orEmpty(positive), want: "a positive number, such as 0.005"},
		{name: setDelta, check: orEmpty(positive), want: "a positive number, such as 1e-9"},
		{name: setMaxError, check: orEmpty(maxErrors), want: "output:number, such as n:25"},
		{name: setAtMost, check: orEmpty(ceiling), want: "a price, such as epsilon:0.1, delta:1e-9"},
		{name: setUseful, check: orEmpty(part), want: "a number above 0 and at most 1, such as 0.5"},
		{name: setConfidence, check: orEmpty(share), want: "a number between 0 and 1"},
		{name: setTogether, standard: "off", check: among("on", "off"), want: "on or off"},
		{name: setMechanism, check: orEmpty(anyText), want: "auto, laplace or gaussian"},
		{name: setMaxGroups, check: orEmpty(count), want: "a whole number of at least 1"},
		{name: setMaxRows, check: orEmpty(count), want: "a whole number of at least 1"},
		{name: setReport, check: orEmpty(among("kept")), want: "kept"},
		{name: setVersion, check: orEmpty(among("latest")), want: "latest"},
		{name: setPlan, check: anyText},
		{name: setIntervals, standard: "off", check: among("off", "columns"), want: "off or columns"},
		{name: setNotices, standard: "on", check: among("on", "off", "always"), want: "on, off or always"},
		{name: setPreview, standard: "refuse", check: among("refuse", "empty"), want: "refuse or empty"},
		{name: setBudget},
		{name: setLastRelease},
		{name: "application_name", reported: true, check: application},
		{name: "search_path", standard: `"$user", public`, reported: true, check: anyText},
		{name: "TimeZone", standard: "UTC", reported: true, check: timeZone, want: "the name of a time zone"},
		{name: "client_encoding", standard: "UTF8", reported: true, check: encoding, want: "UTF8: no other encoding is spoken"},
		{name: "DateStyle", standard: "ISO, MDY", reported: true, check: dateStyle, want: "ISO: dates are sent in no other style"},
		{name: "IntervalStyle", standard: "postgres", reported: true, check: among("postgres"), want: "postgres"},
		{name: "client_min_messages", standard: "notice", check: among("debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log",
			"notice", "warning", "error"), want: "notice, warning or error"},
		{name: "extra_float_digits", standard: "1", check: number, want: "a number"},
		{name: "bytea_output", standard: "hex", check: among("hex", "escape"), want: "hex or escape"},
		{name: "default_transaction_isolation", standard: "read committed", check: isolation, want: "an isolation level"},
		{name: "transaction_isolation", standard: "read committed", check: isolation, want: "an isolation level"},
		{name: "default_transaction_read_only", standard: "on", reported: true, check: readOnly, want: "on: nothing can be written"},
		{name: "transaction_read_only", standard: "on", check: readOnly, want: "on: nothing can be written"},
		{name: "default_transaction_deferrable", standard: "off", check: boolean, want: "on or off"},
		{name: "transaction_deferrable", standard: "off", check: boolean, want: "on or off"},
		{name: "session_authorization", reported: true},
		{name: "role", standard: "none", check: among("none"), want: "none"},
		{name: "is_superuser", standard: "off", reported: true},
		{name: "in_hot_standby", standard: "off", reported: true},
		{name: "server_version", standard: shownVersion, reported: true},
		{name: "server_version_num"},
		{name: "server_encoding", standard: "UTF8", reported: true},
		{name: "integer_datetimes", standard: "on", reported: true},
		{name: "max_identifier_length", standard: "63"},
		{name: "max_index_keys", standard: "32"},
		{name: "block_size", standard: "8192"},
		{name: "lc_collate", standard: "C"},
		{name: "lc_ctype", standard: "C"},
		{name: "lc_messages", standard: "C", check: anyText},
		{name: "lc_monetary", standard: "C", check: anyText},
		{name: "lc_numeric", standard: "C", check: anyText},
		{name: "lc_time", standard: "C", check: anyText},
	}
	// What changes nothing here, and is set by drivers when they connect.
	for name, standard := range map[string]string{"statement_timeout": "0", "lock_timeout": "0",
		"idle_in_transaction_session_timeout": "0", "idle_session_timeout": "0", "cursor_tuple_fraction": "0.1", "work_mem": "4MB",
		"default_table_access_method":     "heap",
		"max_parallel_workers_per_gather": "0", "synchronous_commit": "on", "row_security": "on", "geqo": "on", "jit": "off",
		"enable_seqscan": "on", "plan_cache_mode": "auto", "xmloption": "content", "backslash_quote": "safe_encoding",
		"default_text_search_config": "pg_catalog.simple", "check_function_bodies": "on", "tcp_keepalives_idle": "0"} {
		list = append(list, definition{name: name, standard: standard, check: anyText})
	}
	list = append(list, definition{name: "standard_conforming_strings", standard: "on", reported: true, check: alwaysOn, want: "on"},
		definition{name: "escape_string_warning", standard: "on", check: boolean, want: "on or off"})
	slices.SortFunc(list, func(a, b definition) int { return strings.Compare(strings.ToLower(a.name), strings.ToLower(b.name)) })
	return list
}

func anyText(text string) (string, bool) { return text, true }

func orEmpty(check func(string) (string, bool)) func(string) (string, bool) {
	return func(text string) (string, bool) {
		if text == "" {
			return "", true
		}
		return check(text)
	}
}

func among(values ...string) func(string) (string, bool) {
	return func(text string) (string, bool) {
		text = strings.ToLower(text)
		return text, slices.Contains(values, text)
	}
}

// positive leaves the exact number to the service, which reads it as a decimal.
func positive(text string) (string, bool) {
	v, err := strconv.ParseFloat(text, 64)
	return text, err == nil && v > 0 && !math.IsInf(v, 0)
}

// part is a part of the rows.
func part(text string) (string, bool) {
	v, err := strconv.ParseFloat(text, 64)
	return text, err == nil && v > 0 && v <= 1
}

func share(text string) (string, bool) {
	v, err := strconv.ParseFloat(text, 64)
	return text, err == nil && v > 0 && v < 1
}

func count(text string) (string, bool) {
	v, err := strconv.ParseInt(text, 10, 64)
	return text, err == nil && v >= 1
}

func number(text string) (string, bool) {
	_, err := strconv.ParseFloat(text, 64)
	return text, err == nil
}

func boolean(text string) (string, bool) {
	switch strings.ToLower(text) {
	case "on", "true", "yes", "1", "t", "y":
		return "on", true
	case "off", "false", "no", "0", "f", "n":
		return "off", true
	default:
		return "", false
	}
}

func alwaysOn(text string) (string, bool) {
	value, ok := boolean(text)
	return value, ok && value == "on"
}

// readOnly takes what drivers say when they mean a usual session: nothing can be written in either.
func readOnly(text string) (string, bool) {
	_, ok := boolean(text)
	return "on", ok
}

func isolation(text string) (string, bool) {
	return among("serializable", "repeatable read", "read committed", "read uncommitted")(text)
}

// encoding reads the name as PostgreSQL does, by its letters and digits: asyncpg writes it in quotes.
func encoding(text string) (string, bool) {
	plain := strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
	return "UTF8", plain == "utf8" || plain == "unicode"
}

func dateStyle(text string) (string, bool) {
	order := "MDY"
	for word := range strings.SplitSeq(strings.ToLower(text), ",") {
		switch strings.TrimSpace(word) {
		case "iso":
		case "mdy", "us", "noneuro", "noneuropean":
			order = "MDY"
		case "dmy", "euro", "european":
			order = "DMY"
		case "ymd":
			order = "YMD"
		default:
			return "", false
		}
	}
	return "ISO, " + order, true
}

// timeZone is accepted and shown. Times are sent in UTC, with their offset; what depends on another zone is refused.
func timeZone(text string) (string, bool) {
	return text, text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// zone is the time zone of the session; "": it is UTC, under one of its names.
func (s *settings) zone() string {
	zone := s.get(setTimeZone)
	switch strings.TrimPrefix(strings.ToLower(zone), "etc/") {
	case "utc", "uct", "gmt", "gmt0", "gmt+0", "gmt-0", "greenwich", "universal", "zulu", "z", "0", "+00", "-00", "+00:00", "00:00":
		return ""
	default:
		return zone
	}
}

func application(text string) (string, bool) {
	text = strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
	return text[:min(len(text), maxApplication)], true
}

func maxErrors(text string) (string, bool) {
	_, err := readMaxErrors(text)
	return text, err == nil
}

// readMaxErrors reads "n:25, total:1000".
func readMaxErrors(text string) (map[string]api.Decimal, error) {
	list := map[string]api.Decimal{}
	for part := range strings.SplitSeq(text, ",") {
		at := strings.LastIndexByte(part, ':')
		if at < 0 {
			return nil, fmt.Errorf("no colon in %q", part)
		}
		name, bound := strings.TrimSpace(part[:at]), strings.TrimSpace(part[at+1:])
		if _, ok := positive(bound); !ok || name == "" {
			return nil, fmt.Errorf("no positive number in %q", part)
		}
		list[name] = api.Decimal(bound)
	}
	return list, nil
}

func ceiling(text string) (string, bool) {
	p, err := readPrice(text)
	if err == nil {
		_, err = gateway.CeilingOf(p)
	}
	return text, err == nil
}

// readPrice reads "epsilon:0.1, delta:1e-9".
func readPrice(text string) (*api.Price, error) {
	p := &api.Price{}
	to := map[string]*api.Decimal{"epsilon": &p.Epsilon, "rho": &p.Rho, "delta": &p.Delta}
	for part := range strings.SplitSeq(text, ",") {
		name, amount, _ := strings.Cut(part, ":")
		field := to[strings.TrimSpace(name)]
		if field == nil || *field != "" {
			return nil, fmt.Errorf("no currency, or one twice, in %q", part)
		}
		if *field = api.Decimal(strings.TrimSpace(amount)); *field == "" {
			return nil, fmt.Errorf("no amount in %q", part)
		}
	}
	return p, nil
}

type settings struct {
	known   map[string]definition // by the name in lower case
	reset   map[string]string     // what RESET gives: the start-up packet's values, then the standard
	values  map[string]string     // of the session
	local   map[string]string     // until the end of the transaction
	changed []string              // reported ones that were set and not told yet
}

func newSettings(fixed map[string]string) *settings {
	s := &settings{known: map[string]definition{}, reset: map[string]string{}, values: map[string]string{}, local: map[string]string{}}
	for _, d := range definitions() {
		name := strings.ToLower(d.name)
		s.known[name] = d
		s.reset[name] = d.standard
	}
	maps.Copy(s.reset, fixed)
	return s
}

// get gives a value; "" also for what does not exist.
func (s *settings) get(name string) string {
	for _, values := range []map[string]string{s.local, s.values} {
		if v, ok := values[name]; ok {
			return v
		}
	}
	if standard := "default_" + name; strings.HasPrefix(name, "transaction_") && s.known[standard].name != "" {
		return s.get(standard) // each transaction begins with it
	}
	return s.reset[name]
}

// check finds a setting and gives the value in its usual spelling.
func (s *settings) check(name, value string) (string, *refusal) {
	d, ok := s.known[name]
	switch {
	case !ok:
		return "", s.unknown(name)
	case d.check == nil:
		return "", refusef(stateSettingFixed, "parameter %s cannot be changed", fault.Quote(d.name))
	case !utf8.ValidString(value):
		return "", refusef(stateText, "the value of %s is not UTF-8", fault.Quote(d.name))
	case len(value) > maxSetting:
		return "", refusef(stateValue, "the value of %s is too long", fault.Quote(d.name))
	}
	spelled, ok := d.check(value)
	if !ok {
		return "", refusef(stateValue, "invalid value for parameter %s: %s", fault.Quote(d.name),
			fault.Quote(value)).hinting("it must be " + d.want)
	}
	return spelled, nil
}

func (s *settings) unknown(name string) *refusal {
	r := refusef(stateUnknownSetting, "unrecognized configuration parameter %s", fault.Quote(name))
	if strings.HasPrefix(name, ownPrefix) {
		var own []string
		for n := range s.known {
			if strings.HasPrefix(n, ownPrefix) {
				own = append(own, n)
			}
		}
		slices.Sort(own)
		r.hint = "there are " + strings.Join(own, ", ")
	}
	return r
}

// start takes a value of the start-up packet.
func (s *settings) start(name, value string) *refusal {
	name = strings.ToLower(name)
	value, refused := s.check(name, value)
	if refused == nil {
		s.reset[name] = value
	}
	return refused
}

// set does SET and SET LOCAL.
func (s *settings) set(command statement.Set) *refusal {
	for _, one := range command.Settings {
		if one.Default {
			if refused := s.restore(one.Name, command.Local); refused != nil {
				return refused
			}
			continue
		}
		value, refused := s.check(one.Name, joined(one))
		if refused != nil {
			return refused
		}
		s.put(one.Name, value, command.Local)
	}
	return nil
}

// joined is the value of a setting as one text; the schemas of a path are quoted where they need it.
func joined(one statement.Setting) string {
	if one.Name != setSearchPath {
		return strings.Join(one.Values, ", ")
	}
	words := make([]string, len(one.Values))
	for i, word := range one.Values {
		words[i] = identifier(word)
	}
	return strings.Join(words, ", ")
}

// identifier writes a name as SQL would have it.
func identifier(name string) string {
	plain := name != ""
	for i, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c == '_' || i > 0 && c >= '0' && c <= '9') {
			plain = false
		}
	}
	if plain {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

func (s *settings) put(name, value string, local bool) {
	if s.get(name) != value {
		s.changed = append(s.changed, name)
	}
	if local {
		s.local[name] = value
		return
	}
	delete(s.local, name)
	s.values[name] = value
}

func (s *settings) restore(name string, local bool) *refusal {
	d, ok := s.known[name]
	switch {
	case !ok:
		return s.unknown(name)
	case d.check == nil:
		return refusef(stateSettingFixed, "parameter %s cannot be changed", fault.Quote(d.name))
	}
	s.put(name, s.reset[name], local)
	return nil
}

// resetAll does RESET ALL.
func (s *settings) resetAll() {
	for name := range s.values {
		s.put(name, s.reset[name], false)
	}
}

// saved are the settings at a point to which a transaction can go back.
type saved struct{ values, local map[string]string }

func (s *settings) save() saved { return saved{maps.Clone(s.values), maps.Clone(s.local)} }

func (s *settings) goBack(to saved) {
	before := map[string]string{}
	for name := range s.known {
		before[name] = s.get(name)
	}
	s.values, s.local = maps.Clone(to.values), maps.Clone(to.local)
	s.compare(before)
}

// endLocal ends a transaction for SET LOCAL.
func (s *settings) endLocal() {
	before := map[string]string{}
	for name := range s.local {
		before[name] = s.get(name)
	}
	clear(s.local)
	s.compare(before)
}

func (s *settings) compare(before map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if s.get(name) != before[name] {
			s.changed = append(s.changed, name)
		}
	}
}

// news are the reported settings that changed since it was asked last.
func (s *settings) news() []parameter {
	var list []parameter
	slices.Sort(s.changed)
	for _, name := range slices.Compact(s.changed) {
		if d := s.known[name]; d.reported {
			list = append(list, parameter{d.name, s.get(name)})
		}
	}
	s.changed = nil
	return list
}

// reported are all of them, for the beginning of a session.
func (s *settings) reported() []parameter {
	var list []parameter
	for _, name := range slices.Sorted(maps.Keys(s.known)) {
		if d := s.known[name]; d.reported {
			list = append(list, parameter{d.name, s.get(name)})
		}
	}
	return list
}

// schemas are the search path; an analyst has no personal schema.
func (s *settings) schemas() []string {
	var list []string
	for _, word := range splitNames(s.get(setSearchPath)) {
		if word != "$user" {
			list = append(list, word)
		}
	}
	return list
}

// splitNames reads a list of names as SQL writes them.
func splitNames(text string) []string {
	var list []string
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		var word string
		if text[0] == '"' {
			var b strings.Builder
			i := 1
			for ; i < len(text); i++ {
				if text[i] == '"' {
					if i+1 < len(text) && text[i+1] == '"' {
						i++
					} else {
						break
					}
				}
				b.WriteByte(text[i])
			}
			word, text = b.String(), text[min(i+1, len(text)):]
		} else {
			at := strings.IndexByte(text, ',')
			if at < 0 {
				at = len(text)
			}
			word, text = strings.ToLower(strings.TrimSpace(text[:at])), text[at:]
		}
		if word != "" {
			list = append(list, word)
		}
		text = strings.TrimLeft(text, ", \t\n")
	}
	return list
}

// versionNumber is server_version_num of a server_version.
func versionNumber(version string) string {
	digits, _, _ := strings.Cut(version, " ")
	major, minor, _ := strings.Cut(digits, ".")
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	if err1 != nil || err2 != nil {
		return "150000"
	}
	return strconv.Itoa(a*10000 + b)
}

// request makes a question of a text, at the price of the session.
func (s *settings) request(dataset, sql string) (api.QueryRequest, *refusal) {
	r := api.QueryRequest{Dataset: dataset, SQL: sql, Epsilon: api.Decimal(s.get(setEpsilon)), Rho: api.Decimal(s.get(setRho)),
		Delta: api.Decimal(s.get(setDelta)), Mechanism: s.get(setMechanism), Report: s.get(setReport),
		Version: s.get(setVersion), Plan: s.get(setPlan), TimeZone: s.zone()}
	if text := s.get(setMaxError); text != "" {
		var err error
		if r.MaxError, err = readMaxErrors(text); err != nil {
			return r, refusef(stateValue, "%s must be output:number, such as n:25", setMaxError)
		}
	}
	if text := s.get(setAtMost); text != "" {
		var err error
		if r.AtMost, err = readPrice(text); err != nil {
			return r, refusef(stateValue, "%s must be a price, such as epsilon:0.1, delta:1e-9", setAtMost)
		}
	}
	if text := s.get(setUseful); text != "" {
		part, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return r, refusef(stateValue, "%s must be a number", setUseful)
		}
		r.RequireUseful = &part
	}
	if text := s.get(setConfidence); text != "" {
		level, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return r, refusef(stateValue, "%s must be a number", setConfidence)
		}
		r.Confidence = api.Level(level)
	}
	if s.get(setTogether) == "on" {
		if r.Confidence == nil {
			r.Confidence = &api.Confidence{}
		}
		r.Confidence.Simultaneous = true
	}
	for _, bound := range []struct {
		name string
		to   **int64
	}{{setMaxGroups, &r.MaxGroups}, {setMaxRows, &r.MaxRows}} {
		if text := s.get(bound.name); text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return r, refusef(stateValue, "%s must be a whole number", bound.name)
			}
			*bound.to = &n
		}
	}
	return r, nil
}
