package statement

import (
	"strconv"
	"strings"
)

// shown are a relation's rows as this session may see them.
func (v *View) shown(name TableName) Rows {
	if name.Schema == ownSchema {
		rows, ok := v.Own[name.Name]
		if !ok {
			halt(-1, stateNoTable, "", "relation %q does not exist", name.Name)
		}
		return rows
	}
	owner := strconv.FormatUint(uint64(v.Owner), 10)
	var rows []map[string]string // a column that is absent is NULL
	switch name.Name {
	case "pg_database":
		rows = []map[string]string{{"oid": "16384", "datname": v.Database, "datdba": owner, "encoding": "6", "datlocprovider": "c",
			"datistemplate": "f", "datallowconn": "t", "dathasloginevt": "f", "datconnlimit": "-1", "datfrozenxid": "3", "datminmxid": "1",
			"dattablespace": "1663", "datcollate": "C", "datctype": "C", "datlastsysoid": "16383"}}
	case "pg_roles":
		rows = []map[string]string{{"oid": owner, "rolname": v.User, "rolsuper": "f", "rolinherit": "t", "rolcreaterole": "f",
			"rolcreatedb": "f", "rolcanlogin": "t", "rolreplication": "f", "rolconnlimit": "-1", "rolpassword": "********",
			"rolbypassrls": "f"}}
	case "pg_user":
		rows = []map[string]string{{"usesysid": owner, "usename": v.User, "usecreatedb": "f", "usesuper": "f", "userepl": "f",
			"usebypassrls": "f", "passwd": "********"}}
	case "pg_tablespace":
		rows = []map[string]string{{"oid": "1663", "spcname": "pg_default", "spcowner": owner}}
	case "pg_stat_activity":
		for _, a := range v.Sessions {
			rows = append(rows, map[string]string{"datid": "16384", "datname": v.Database, "pid": strconv.Itoa(int(a.PID)), "usesysid": owner,
				"usename": v.User, "application_name": a.Application, "state": a.State, "backend_type": "client backend",
				"backend_start": a.Started.UTC().Format("2006-01-02 15:04:05.999999Z07:00"), "query": ""})
		}
	case "pg_settings":
		for _, p := range v.Parameters {
			rows = append(rows, map[string]string{"name": p.Name, "setting": p.Value, "category": "Session", "short_desc": p.Description,
				"context": "user", "vartype": "string", "source": "session", "boot_val": p.Value, "reset_val": p.Value, "pending_restart": "f"})
		}
	}
	result := Rows{Columns: v.columns(name)}
	for _, row := range rows {
		values := make([]*string, len(result.Columns))
		for i, column := range result.Columns {
			if value, ok := row[column.Name]; ok {
				values[i] = &value
			}
		}
		result.Values = append(result.Values, values)
	}
	return result
}

// columns are those of a replaced relation in the twin.
func (v *View) columns(name TableName) []Column {
	columns := v.Columns[name]
	if len(columns) == 0 {
		halt(-1, stateNoTable, "", "relation %q does not exist", name.Schema+"."+name.Name)
	}
	return columns
}

// query writes rows as a query of VALUES, with the type of each column. Columns that are NULL in all rows stand outside of VALUES, so that
// relations of many columns stay short.
func (r Rows) query() string {
	var list, names []string
	var kept []int
	for i, c := range r.Columns {
		value := "NULL"
		for _, row := range r.Values {
			if row[i] != nil {
				value = "v.c" + strconv.Itoa(i)
				names = append(names, "c"+strconv.Itoa(i))
				kept = append(kept, i)
				break
			}
		}
		list = append(list, "CAST("+value+" AS "+castName(c.Type)+`) AS "`+strings.ReplaceAll(c.Name, `"`, `""`)+`"`)
	}
	query := "SELECT " + strings.Join(list, ", ")
	if len(r.Values) == 0 {
		return query + " WHERE false"
	}
	if len(kept) == 0 {
		return query + " FROM pg_catalog.generate_series(1, " + strconv.Itoa(len(r.Values)) + ")"
	}
	lines := make([]string, len(r.Values))
	for i, row := range r.Values {
		values := make([]string, len(kept))
		for j, column := range kept {
			values[j] = "NULL"
			if row[column] != nil {
				values[j] = quote(*row[column])
			}
		}
		lines[i] = "(" + strings.Join(values, ", ") + ")"
	}
	return query + " FROM (VALUES " + strings.Join(lines, ", ") + ") v(" + strings.Join(names, ", ") + ")"
}

// castName is the name of a type to cast to; anyarray is no type of a value.
func castName(name string) string {
	if name == "anyarray" {
		return "text[]"
	}
	return name
}
