package verify

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"noisegate.example/catalog"
)

// copied is the snapshot of town with a copy of visits, of 5 rows of each person, and a pin of it and of shops.
func copied() (*catalog.Snapshot, []Pin) {
	on, pins := town()
	c := &catalog.Table{Schema: "noisegate_prepared", Name: "visits_7", OID: 70,
		Unit: catalog.Unit{Kind: catalog.ColumnUnit, Column: "person_id"},
		Copy: &catalog.Copy{Of: catalog.TableName{Schema: "public", Name: "visits"}, MaxRows: 5}}
	p := Pin{Schema: c.Schema, Table: c.Name, OID: c.OID, Keys: [][]string{{"noisegate_rn", "person_id"}},
		Checks: []Check{{Column: "noisegate_rn", Lo: 1, Hi: 5}}}
	for i, column := range []struct {
		name string
		typ  catalog.Type
	}{{"person_id", catalog.Int8}, {"noisegate_rn", catalog.Int4}, {"ward", catalog.Int4}, {"minutes", catalog.Int4}} {
		c.Columns = append(c.Columns, &catalog.Column{Name: column.name, AttNum: int16(i + 1), TypeOID: uint32(i), TypMod: -1, Type: column.typ})
		p.Columns = append(p.Columns, PinnedColumn{Name: column.name, AttNum: int16(i + 1), TypeOID: uint32(i), TypMod: -1, NotNull: i < 2})
	}
	shops, _ := on.Table("public", "shops")
	return &catalog.Snapshot{Tables: []*catalog.Table{c, shops}}, []Pin{p, pins[3]}
}

// What a unit adds to statements over a copy is what key and check say, and without either it is nothing that is known.
func TestUnsafeStatementsOverCopies(t *testing.T) {
	const (
		count       = `SELECT @count(*)::@text FROM ONLY "noisegate_prepared"."visits_7"`
		sum         = `SELECT COALESCE(@sum(C4("minutes", 0, 240)), 0)::@text FROM ONLY "noisegate_prepared"."visits_7"`
		byWard      = `SELECT "ward"::@text, @count(*)::@text FROM ONLY "noisegate_prepared"."visits_7" GROUP BY "ward"`
		units       = `SELECT @count(DISTINCT @int8xor("person_id"::bigint, «7640891576956012809»::bigint))::@text FROM ONLY "noisegate_prepared"."visits_7"`
		unitsByWard = `SELECT "ward"::@text, @count(DISTINCT @int8xor("person_id"::bigint, «7640891576956012809»::bigint))::@text FROM ONLY "noisegate_prepared"."visits_7" GROUP BY "ward"`
		different   = `SELECT @count(u.x)::@text FROM (SELECT "minutes" AS x FROM ONLY "noisegate_prepared"."visits_7" GROUP BY "minutes") AS u`
		joined      = `SELECT @count(*)::@text FROM ONLY "noisegate_prepared"."visits_7" AS t1 JOIN ONLY "public"."shops" AS t2 ON t1."ward" = t2."shop_id"`
	)
	union := func(l, r string) string { // how many units have a value in one of two queries
		const from = `FROM ONLY "noisegate_prepared"."visits_7"`
		return `SELECT @count(*)::@text FROM (SELECT DISTINCT q.p, q.x FROM (SELECT "person_id" AS p, ` + l + ` AS x ` + from +
			` UNION ALL SELECT "person_id" AS p, ` + r + ` AS x ` + from + `) AS q) AS d WHERE d.x = «7»::bigint`
	}
	unpinned := func(change func(*Pin)) func([]Pin) {
		return func(pins []Pin) {
			pins[0].Columns, pins[0].Keys, pins[0].Checks = slices.Clone(pins[0].Columns), slices.Clone(pins[0].Keys), slices.Clone(pins[0].Checks)
			change(&pins[0])
		}
	}
	for name, c := range map[string]struct {
		sql                  string
		keys                 int
		groups, most, l1, l2 int64
		change               func([]Pin)
		proven               bool
	}{
		"all rows":                      {sql: count, groups: 1, most: 5, l1: 5, l2: 25, proven: true},
		"all rows but one":              {sql: count, groups: 1, most: 4, l1: 4, l2: 16},
		"rows up to a rank":             {sql: count + ` WHERE "noisegate_rn" <= «2»::integer`, groups: 1, most: 2, l1: 2, l2: 4, proven: true},
		"rows up to a rank, fewer":      {sql: count + ` WHERE "noisegate_rn" <= «3»::integer`, groups: 1, most: 2, l1: 2, l2: 4},
		"rows from a rank on":           {sql: count + ` WHERE "noisegate_rn" >= «2»::integer`, groups: 1, most: 2, l1: 2, l2: 4},
		"one of two ranks":              {sql: count + ` WHERE "noisegate_rn" <= «2»::integer OR "ward" = «3»::integer`, groups: 1, most: 2, l1: 2, l2: 4},
		"a sum":                         {sql: sum, groups: 1, most: 1200, l1: 1200, l2: 1440000, proven: true},
		"a sum of less":                 {sql: sum, groups: 1, most: 1199, l1: 1199, l2: 1440000},
		"groups":                        {sql: byWard, keys: 1, groups: 5, most: 5, l1: 5, l2: 25, proven: true},
		"groups, fewer":                 {sql: byWard, keys: 1, groups: 4, most: 5, l1: 5, l2: 25},
		"groups, less in all":           {sql: byWard, keys: 1, groups: 5, most: 5, l1: 4, l2: 25},
		"groups, less of squares":       {sql: byWard, keys: 1, groups: 5, most: 5, l1: 5, l2: 24},
		"a public table by its key":     {sql: joined, groups: 1, most: 5, l1: 5, l2: 25, proven: true},
		"a public table by another key": {sql: strings.Replace(joined, `t2."shop_id"`, `@length(t2."name")`, 1), groups: 1, most: 5, l1: 5, l2: 25},
		"the number of a unit":          {sql: count + ` WHERE ("person_id" = «7»::bigint)`, groups: 1, most: 5, l1: 5, l2: 25},
		"the order of numbers":          {sql: strings.Replace(count, `@count(*)`, `@count(@hashint8extended("person_id", 0))`, 1), groups: 1, most: 5, l1: 5, l2: 25},
		"units":                         {sql: units, groups: 1, most: 1, l1: 1, l2: 1, proven: true},
		"units of groups":               {sql: unitsByWard, keys: 1, groups: 5, most: 1, l1: 5, l2: 5, proven: true},
		"units of groups, fewer":        {sql: unitsByWard, keys: 1, groups: 4, most: 1, l1: 5, l2: 5},
		"units of groups, less in all":  {sql: unitsByWard, keys: 1, groups: 5, most: 1, l1: 4, l2: 5},
		"units of some rows":            {sql: strings.Replace(units, `)::`, `) FILTER (WHERE "minutes" > «3»::integer)::`, 1), groups: 1, most: 1, l1: 1, l2: 1, proven: true},
		"units by what numbers are":     {sql: strings.Replace(units, `"person_id"`, `"person_id" / «9»::bigint`, 1), groups: 1, most: 5, l1: 5, l2: 25},
		"units of some numbers":         {sql: strings.Replace(units, `)::`, `) FILTER (WHERE "person_id" > «3»::bigint)::`, 1), groups: 1, most: 1, l1: 1, l2: 1},
		"units of a query":              {sql: strings.Replace(units, `FROM `, `FROM (SELECT "person_id" FROM `, 1) + `) AS q`, groups: 1, most: 1, l1: 1, l2: 1, proven: true},
		"a number of a query": {sql: strings.Replace(count, `FROM `, `FROM (SELECT "person_id" FROM `, 1) + `) AS q WHERE (q."person_id" = «7»::bigint)`,
			groups: 1, most: 5, l1: 5, l2: 25},
		"what a number is, of a query": {sql: strings.Replace(count, `FROM `, `FROM (SELECT "person_id" / «9»::bigint AS p FROM `, 1) + `) AS q WHERE (q.p = «7»::bigint)`,
			groups: 1, most: 5, l1: 5, l2: 25},
		"a number of two queries": {sql: `SELECT @count(u.x)::@text FROM (SELECT q."person_id" AS x FROM (SELECT "person_id" FROM ONLY "noisegate_prepared"."visits_7" UNION ALL ` +
			`SELECT "person_id" FROM ONLY "noisegate_prepared"."visits_7") AS q GROUP BY q."person_id") AS u`, groups: 1, most: 1, l1: 1, l2: 1},
		"values of two queries": {sql: union(`"minutes"::bigint`, `"ward"::bigint`), groups: 1, most: 1, l1: 1, l2: 1, proven: true},
		"values and numbers":    {sql: union(`"minutes"::bigint`, `"person_id"`), groups: 1, most: 1, l1: 1, l2: 1},
		"numbers and values":    {sql: union(`"person_id"`, `"minutes"::bigint`), groups: 1, most: 1, l1: 1, l2: 1},
		"a number among others": {sql: strings.Replace(count, `FROM ONLY`, `FROM ONLY "public"."shops" AS s JOIN ONLY`, 1) + ` AS v ON s."shop_id" = v."ward"` +
			` WHERE (s."shop_id" IN (SELECT x."person_id" FROM ONLY "noisegate_prepared"."visits_7" AS x))`, groups: 1, most: 5, l1: 5, l2: 25},
		"numbers that are there":  {sql: strings.Replace(units, `DISTINCT `, ``, 1), groups: 1, most: 5, l1: 5, l2: 25},
		"numbers added up":        {sql: strings.Replace(units, `count(DISTINCT`, `sum(DISTINCT`, 1), groups: 1, most: 1 << 60, l1: 1 << 60, l2: 1 << 60},
		"different values":        {sql: different, groups: 1, most: 5, l1: 5, l2: 25, proven: true},
		"different values, fewer": {sql: different, groups: 1, most: 4, l1: 4, l2: 16},
		"no check":                {sql: count, groups: 1, most: 5, l1: 5, l2: 25, change: unpinned(func(p *Pin) { p.Checks = nil })},
		"a check of more":         {sql: count, groups: 1, most: 5, l1: 5, l2: 25, change: unpinned(func(p *Pin) { p.Checks[0].Hi = 6 })},
		"a check from 0":          {sql: count, groups: 1, most: 5, l1: 5, l2: 25, change: unpinned(func(p *Pin) { p.Checks[0].Lo = 0 })},
		"a check of another column": {sql: count, groups: 1, most: 5, l1: 5, l2: 25,
			change: unpinned(func(p *Pin) { p.Checks[0].Column = "ward" })},
		"no key": {sql: count, groups: 1, most: 5, l1: 5, l2: 25, change: unpinned(func(p *Pin) { p.Keys = nil })},
		"a rank that may be NULL": {sql: count, groups: 1, most: 5, l1: 5, l2: 25,
			change: unpinned(func(p *Pin) { p.Columns[1].NotNull = false })},
		"a unit that may be NULL": {sql: count, groups: 1, most: 5, l1: 5, l2: 25,
			change: unpinned(func(p *Pin) { p.Columns[0].NotNull = false })},
	} {
		t.Run(name, func(t *testing.T) {
			on, pins := copied()
			if c.change != nil {
				c.change(pins)
			}
			sql, args := expand(c.sql)
			err := Statement(sql, args, on, Claim{Keys: c.keys, Groups: big.NewInt(c.groups), PerGroup: []*big.Int{big.NewInt(c.most)}, Pins: pins,
				Norms: []Norm{{Columns: []int{0}, L1: big.NewInt(c.l1), L2Squared: big.NewInt(c.l2)}}})
			if (err == nil) != c.proven {
				t.Errorf("%s: %v", sql, err)
			}
		})
	}
}

// copiedByWard is copied with ranks of groups by ward.
func copiedByWard() (*catalog.Snapshot, []Pin) {
	on, pins := copied()
	c := on.Tables[0]
	c.Copy.Ranks = []catalog.RankSet{{Keys: []string{"ward"}, Group: "noisegate_group_1", Row: "noisegate_row_1"}}
	for _, name := range []string{"noisegate_group_1", "noisegate_row_1"} {
		n := len(c.Columns)
		c.Columns = append(c.Columns, &catalog.Column{Name: name, AttNum: int16(n + 1), TypeOID: uint32(n), TypMod: -1, Type: catalog.Int4})
		pins[0].Columns = append(pins[0].Columns, PinnedColumn{Name: name, AttNum: int16(n + 1), TypeOID: uint32(n), TypMod: -1, NotNull: true})
	}
	return on, pins
}

// Ranks of groups, and of rows in them, bound what they are ranks of, and no more.
func TestUnsafeStatementsOverRanks(t *testing.T) {
	const (
		byWard  = `SELECT "ward"::@text, @count(*)::@text FROM ONLY "noisegate_prepared"."visits_7" WHERE "noisegate_group_1" <= «2»::integer AND "noisegate_row_1" <= «2»::integer GROUP BY "ward"`
		finer   = `SELECT "ward"::@text, "minutes"::@text, @count(*)::@text FROM ONLY "noisegate_prepared"."visits_7" WHERE "noisegate_group_1" <= «2»::integer AND "noisegate_row_1" <= «2»::integer GROUP BY "ward", "minutes"`
		other   = `SELECT "minutes"::@text, @count(*)::@text FROM ONLY "noisegate_prepared"."visits_7" WHERE "noisegate_group_1" <= «2»::integer AND "noisegate_row_1" <= «2»::integer GROUP BY "minutes"`
		groups  = `SELECT "ward"::@text, @count(*)::@text FROM ONLY "noisegate_prepared"."visits_7" WHERE "noisegate_group_1" <= «2»::integer GROUP BY "ward"`
		rows    = `SELECT "ward"::@text, @count(*)::@text FROM ONLY "noisegate_prepared"."visits_7" WHERE "noisegate_row_1" <= «2»::integer GROUP BY "ward"`
		none    = `SELECT @count(*)::@text FROM ONLY "noisegate_prepared"."visits_7" WHERE "noisegate_group_1" <= «2»::integer AND "noisegate_row_1" <= «2»::integer`
		units   = `SELECT "ward"::@text, @count(DISTINCT @int8xor("person_id"::bigint, «7640891576956012809»::bigint))::@text FROM ONLY "noisegate_prepared"."visits_7" WHERE "noisegate_group_1" <= «2»::integer GROUP BY "ward"`
		ofOther = `SELECT t2."name"::@text, @count(*)::@text FROM ONLY "noisegate_prepared"."visits_7" AS t1 JOIN ONLY "public"."shops" AS t2 ON t1."ward" = t2."shop_id" WHERE t1."noisegate_group_1" <= «2»::integer AND t1."noisegate_row_1" <= «2»::integer GROUP BY t2."name"`
		coarser = `SELECT ("ward" > «1»::integer)::@text, @count(*)::@text FROM ONLY "noisegate_prepared"."visits_7" WHERE "noisegate_group_1" <= «2»::integer AND "noisegate_row_1" <= «2»::integer GROUP BY ("ward" > «1»::integer)`
	)
	const byText = `SELECT ((CASE WHEN (@octet_length("ward") <= 1024) THEN "ward" END) COLLATE @"C")::@text, @count(*)::@text FROM ONLY "noisegate_prepared"."visits_7" ` +
		`WHERE "noisegate_group_1" <= «2»::integer AND "noisegate_row_1" <= «2»::integer GROUP BY ((CASE WHEN (@octet_length("ward") <= 1024) THEN "ward" END) COLLATE @"C")`
	ofTexts := func(on *catalog.Snapshot, _ []Pin) { on.Tables[0].Columns[2].Type = catalog.Text }
	for name, c := range map[string]struct {
		sql                  string
		keys                 int
		groups, most, l1, l2 int64
		change               func(*catalog.Snapshot, []Pin)
		proven               bool
	}{
		"the set":                     {sql: byWard, keys: 1, groups: 2, most: 2, l1: 4, l2: 8, proven: true},
		"the set, fewer groups":       {sql: byWard, keys: 1, groups: 1, most: 2, l1: 4, l2: 8},
		"the set, fewer rows":         {sql: byWard, keys: 1, groups: 2, most: 1, l1: 4, l2: 8},
		"the set, less in all":        {sql: byWard, keys: 1, groups: 2, most: 2, l1: 3, l2: 8},
		"finer":                       {sql: finer, keys: 2, groups: 4, most: 2, l1: 4, l2: 8, proven: true},
		"finer, as many as the set's": {sql: finer, keys: 2, groups: 2, most: 2, l1: 4, l2: 8},
		"other keys":                  {sql: other, keys: 1, groups: 4, most: 4, l1: 4, l2: 16, proven: true},
		"other keys as the set's":     {sql: other, keys: 1, groups: 4, most: 2, l1: 4, l2: 8},
		"other keys, groups of set":   {sql: other, keys: 1, groups: 2, most: 4, l1: 4, l2: 16},
		"no keys":                     {sql: none, groups: 1, most: 4, l1: 4, l2: 16, proven: true},
		"no keys, fewer":              {sql: none, groups: 1, most: 2, l1: 2, l2: 4},
		"groups only":                 {sql: groups, keys: 1, groups: 2, most: 5, l1: 5, l2: 25, proven: true},
		"groups only, rows too":       {sql: groups, keys: 1, groups: 2, most: 2, l1: 4, l2: 8},
		"rows only":                   {sql: rows, keys: 1, groups: 5, most: 2, l1: 5, l2: 9, proven: true},
		"rows only, groups too":       {sql: rows, keys: 1, groups: 2, most: 2, l1: 4, l2: 8},
		"units":                       {sql: units, keys: 1, groups: 2, most: 1, l1: 2, l2: 2, proven: true},
		"units, fewer":                {sql: units, keys: 1, groups: 1, most: 1, l1: 1, l2: 1},
		"coarser":                     {sql: coarser, keys: 1, groups: 2, most: 4, l1: 4, l2: 16, proven: true},
		"coarser, fewer groups":       {sql: coarser, keys: 1, groups: 1, most: 4, l1: 4, l2: 16},
		"of what is joined":           {sql: ofOther, keys: 1, groups: 4, most: 4, l1: 4, l2: 16, proven: true},
		"of one group, what is joined": {sql: strings.Replace(ofOther, "«2»", "«1»", 1), keys: 1, groups: 2, most: 2, l1: 2, l2: 4,
			proven: true},
		"texts of a set": {sql: byText, keys: 1, groups: 2, most: 2, l1: 4, l2: 8, change: ofTexts, proven: true},
		"texts cut once more": {sql: strings.ReplaceAll(byText, "1024", "9"), keys: 1, groups: 2, most: 2, l1: 4, l2: 8,
			change: ofTexts},
		"a group that may be NULL": {sql: byWard, keys: 1, groups: 2, most: 2, l1: 4, l2: 8,
			change: func(_ *catalog.Snapshot, p []Pin) { p[0].Columns[4].NotNull = false }},
		"a row that may be NULL": {sql: byWard, keys: 1, groups: 2, most: 2, l1: 4, l2: 8,
			change: func(_ *catalog.Snapshot, p []Pin) { p[0].Columns[5].NotNull = false }},
		"a unit that may be NULL": {sql: byWard, keys: 1, groups: 2, most: 2, l1: 4, l2: 8,
			change: func(_ *catalog.Snapshot, p []Pin) { p[0].Columns[0].NotNull = false }},
		"a copy without sets": {sql: byWard, keys: 1, groups: 2, most: 2, l1: 4, l2: 8,
			change: func(on *catalog.Snapshot, _ []Pin) { on.Tables[0].Copy.Ranks = nil }},
		"a set of more keys": {sql: byWard, keys: 1, groups: 2, most: 2, l1: 4, l2: 8,
			change: func(on *catalog.Snapshot, _ []Pin) { on.Tables[0].Copy.Ranks[0].Keys = []string{"minutes", "ward"} }},
		"a set of a key that is no pin": {sql: byWard, keys: 1, groups: 2, most: 2, l1: 4, l2: 8,
			change: func(on *catalog.Snapshot, _ []Pin) { on.Tables[0].Copy.Ranks[0].Keys = []string{"hour", "ward"} }},
	} {
		t.Run(name, func(t *testing.T) {
			on, pins := copiedByWard()
			pins[0].Columns = slices.Clone(pins[0].Columns)
			if c.change != nil {
				c.change(on, pins)
			}
			sql, args := expand(c.sql)
			err := Statement(sql, args, on, Claim{Keys: c.keys, Groups: big.NewInt(c.groups), PerGroup: []*big.Int{big.NewInt(c.most)}, Pins: pins,
				Norms: []Norm{{Columns: []int{0}, L1: big.NewInt(c.l1), L2Squared: big.NewInt(c.l2)}}})
			if (err == nil) != c.proven {
				t.Errorf("%s: %v", sql, err)
			}
		})
	}
}

// Where a public table has several rows of a key, what a unit adds is bounded by a cut of that table to some of them, and by no other.
func TestUnsafeJoinsOfCopies(t *testing.T) {
	const (
		cut = `(SELECT v.c0, v.c1 FROM (SELECT t2."shop_id" AS c0, t2."tag" AS c1, @row_number() OVER (PARTITION BY t2."shop_id" ORDER BY t2."shop_id", ` +
			`t2."tag"::@text COLLATE @"C") AS place FROM ONLY "public"."tags" AS t2) AS v WHERE v.place <= «3»::bigint) AS w`
		count = `SELECT @count(*)::@text FROM ONLY "noisegate_prepared"."visits_7" AS t1 JOIN ` + cut + ` ON t1."ward" = w.c0`
		byTag = `SELECT (w.c1 COLLATE @"C")::@text, @count(*)::@text FROM ONLY "noisegate_prepared"."visits_7" AS t1 JOIN ` + cut +
			` ON t1."ward" = w.c0 GROUP BY (w.c1 COLLATE @"C")`
	)
	for name, c := range map[string]struct {
		sql, old, new        string
		keys                 int
		groups, most, l1, l2 int64
		proven               bool
	}{
		"all":                      {sql: count, groups: 1, most: 15, l1: 15, l2: 225, proven: true},
		"fewer":                    {sql: count, groups: 1, most: 14, l1: 14, l2: 196},
		"beside each row":          {sql: count, old: `t1 JOIN`, new: `t1 LEFT JOIN`, groups: 1, most: 15, l1: 15, l2: 225, proven: true},
		"of fewer rows":            {sql: count + ` WHERE t1."noisegate_rn" <= «2»::integer`, groups: 1, most: 6, l1: 6, l2: 36, proven: true},
		"groups":                   {sql: byTag, keys: 1, groups: 15, most: 15, l1: 15, l2: 225, proven: true},
		"groups, fewer":            {sql: byTag, keys: 1, groups: 14, most: 15, l1: 15, l2: 225},
		"groups, less in all":      {sql: byTag, keys: 1, groups: 15, most: 15, l1: 14, l2: 225},
		"no cut":                   {sql: count, old: ` WHERE v.place <= «3»::bigint`, groups: 1, most: 15, l1: 15, l2: 225},
		"a cut of more":            {sql: count, old: `«3»`, new: `«4»`, groups: 1, most: 15, l1: 15, l2: 225},
		"a cut from below":         {sql: count, old: `place <=`, new: `place >=`, groups: 1, most: 15, l1: 15, l2: 225},
		"a cut by another column":  {sql: count, old: `PARTITION BY t2."shop_id"`, new: `PARTITION BY t2."tag"`, groups: 1, most: 15, l1: 15, l2: 225},
		"a cut by more":            {sql: count, old: `PARTITION BY t2."shop_id"`, new: `PARTITION BY t2."shop_id", t2."tag"`, groups: 1, most: 15, l1: 15, l2: 225},
		"a cut of all":             {sql: count, old: `PARTITION BY t2."shop_id" `, groups: 1, most: 15, l1: 15, l2: 225, proven: true},
		"a rank with gaps":         {sql: count, old: `@row_number()`, new: `@rank()`, groups: 1, most: 15, l1: 15, l2: 225},
		"a rank of what is equal":  {sql: count, old: `@row_number()`, new: `@dense_rank()`, groups: 1, most: 15, l1: 15, l2: 225},
		"rows that tie and differ": {sql: byTag, old: `, t2."tag"::@text COLLATE @"C") AS place`, new: `) AS place`, keys: 1, groups: 15, most: 15, l1: 15, l2: 225},
		"another column joined":    {sql: count, old: `t1."ward" = w.c0`, new: `t1."ward" = @length(w.c1)`, groups: 1, most: 15, l1: 15, l2: 225},
		"numbered after a join": {sql: count, old: `"public"."tags" AS t2`, new: `"public"."tags" AS t2 JOIN ONLY "public"."shops" AS s ON s."name" = t2."tag"`,
			groups: 1, most: 15, l1: 15, l2: 225},
		"numbered by rows of people": {sql: count, old: `"public"."tags" AS t2`, new: `"public"."tags" AS t2 JOIN ONLY "noisegate_prepared"."visits_7" AS x ON x."ward" = t2."shop_id"`,
			groups: 1, most: 15, l1: 15, l2: 225},
	} {
		t.Run(name, func(t *testing.T) {
			on, pins := copied()
			full, all := town()
			on.Tables, pins = append(on.Tables, full.Tables[4]), append(pins, all[4])
			changed := strings.Replace(c.sql, c.old, c.new, 1)
			if c.old != "" && changed == c.sql {
				t.Error("nothing changed")
			}
			sql, args := expand(changed)
			err := Statement(sql, args, on, Claim{Keys: c.keys, Groups: big.NewInt(c.groups), PerGroup: []*big.Int{big.NewInt(c.most)}, Pins: pins,
				Norms: []Norm{{Columns: []int{0}, L1: big.NewInt(c.l1), L2Squared: big.NewInt(c.l2)}}})
			if (err == nil) != c.proven {
				t.Errorf("%s: %v", sql, err)
			}
		})
	}
}

// What makes a copy is proven as it is printed, and no longer where any part of it is another.
func TestUnsafeCopies(t *testing.T) {
	const (
		units = `INSERT INTO "noisegate_prepared"."units_1" (id) SELECT DISTINCT t."person_id" AS id FROM ONLY "public"."visits" AS t ` +
			`WHERE (t."person_id" IS NOT NULL) ON CONFLICT DO NOTHING`
		fill = `INSERT INTO "noisegate_prepared"."visits_7" ("person_id", noisegate_rn, "ward", "reason") SELECT u.unit, r.rn, r.c0, r.c1 ` +
			`FROM (SELECT t."person_id" AS id, pg_catalog.row_number() OVER (PARTITION BY t."person_id" ORDER BY ` +
			`pg_catalog.hashint8extended(t."visit_id"::bigint, pg_catalog.hashint8extended(t."person_id"::bigint, $1::bigint)), t."visit_id") AS rn, ` +
			`t."ward" AS c0, CASE WHEN (pg_catalog.octet_length(t."reason") <= 9) THEN t."reason" END AS c1 ` +
			`FROM ONLY "public"."visits" AS t WHERE (t."person_id" IS NOT NULL)) AS r JOIN ONLY "noisegate_prepared"."units_1" AS u ON u.id = r.id WHERE r.rn <= 5`
	)
	numbered := `SELECT NOT EXISTS (SELECT FROM ONLY "noisegate_prepared"."units_1" GROUP BY id HAVING pg_catalog.count(*) > 1) AND ` +
		`NOT EXISTS (SELECT FROM ONLY "noisegate_prepared"."units_1" GROUP BY unit HAVING pg_catalog.count(*) > 1)`
	alter := strings.NewReplacer()
	prove := func(units, fill string, change func([]Pin)) error {
		on, pins := town()
		pins[1].Columns[0].NotNull = true
		pins[1].Keys = pins[1].Keys[:1]
		if change != nil {
			change(pins)
		}
		over, _ := copied()
		over.Tables[0].Columns[3] = &catalog.Column{Name: "reason", AttNum: 4, Type: catalog.Text}
		return Build(Copying{Units: units, Numbered: numbered, Added: alter.Replace(added(units)), Insert: fill, Copy: over.Tables[0],
			UnitsTable: "units_1", Pins: pins}, on)
	}
	if err := prove(units, fill, nil); err != nil {
		t.Fatal("as it is printed:", err)
	}
	printed := numbered
	for _, other := range []string{"", "SELECT true", strings.Replace(printed, "BY id", "BY unit", 1),
		strings.ReplaceAll(printed, "units_1", "units_2")} {
		if numbered = other; prove(units, fill, nil) == nil {
			t.Errorf("keys are seen by %q", other)
		}
	}
	numbered = printed
	for _, c := range [][2]string{{`SELECT NOT`, `SELECT true OR NOT`}, {`i.id = u.id`, `i.id <> u.id`}, {`t.unit = u.unit`, `t.id = u.id`}, {` OFFSET 0`, ``},
		{`t."person_id" AS id`, `t."ward" AS id`}, {`units_1`, `units_2`}} {
		if alter = strings.NewReplacer(c[0], c[1]); prove(units, fill, nil) == nil {
			t.Errorf("keys of added ids are seen by %q", c[1])
		}
	}
	alter = strings.NewReplacer()
	for name, c := range map[string][2]string{
		"ranks over all units":            {`PARTITION BY t."person_id"`, `PARTITION BY t."ward"`},
		"texts that are longer":           {`<= 9)`, `<= 1025)`},
		"texts that are not cut":          {`CASE WHEN (pg_catalog.octet_length(t."reason") <= 9) THEN t."reason" END AS c1`, `t."reason" AS c1`},
		"ranks over everybody":            {`PARTITION BY t."person_id" ORDER`, `ORDER`},
		"ranks that tie":                  {`, t."visit_id") AS rn`, `) AS rn`},
		"another rank":                    {`pg_catalog.row_number()`, `pg_catalog.random()`},
		"rows of nobody":                  {`WHERE (t."person_id" IS NOT NULL)) AS r`, `) AS r`},
		"more rows":                       {`r.rn <= 5`, `r.rn <= 6`},
		"all rows":                        {` WHERE r.rn <= 5`, ``},
		"rows beyond":                     {`r.rn <= 5`, `r.rn >= 5`},
		"a bound that is not the rank's":  {`WHERE r.rn <= 5`, `WHERE r.c0 <= 5`},
		"a rank that is another column":   {`u.unit, r.rn, r.c0`, `u.unit, r.c0, r.c0`},
		"a condition beside the bound":    {`r.rn <= 5`, `r.rn <= 5 AND r.c0 > 1`},
		"a number that is not the unit's": {`SELECT u.unit,`, `SELECT r.id,`},
		"the id of the unit":              {`r.rn, r.c0, r.c1 `, `r.rn, r.id, r.c1 `},
		"a join by something else":        {`ON u.id = r.id`, `ON u.id = r.c0`},
		"a join by numbers":               {`ON u.id = r.id`, `ON u.unit = r.id`},
		"a join of all":                   {`JOIN ONLY "noisegate_prepared"."units_1" AS u ON u.id = r.id`, `CROSS JOIN ONLY "noisegate_prepared"."units_1" AS u`},
		"an outer join":                   {`JOIN ONLY`, `LEFT JOIN ONLY`},
		"another table of numbers":        {`ONLY "noisegate_prepared"."units_1"`, `ONLY "public"."units_1"`},
		"other numbers":                   {`"noisegate_prepared"."units_1" AS u`, `"noisegate_prepared"."units_2" AS u`},
		"tables that inherit":             {`JOIN ONLY "noisegate_prepared"`, `JOIN "noisegate_prepared"`},
		"the source with its heirs":       {`FROM ONLY "public"."visits"`, `FROM "public"."visits"`},
		"another copy":                    {`INTO "noisegate_prepared"."visits_7"`, `INTO "noisegate_prepared"."visits_8"`},
		"columns in another order":        {`("person_id", noisegate_rn,`, `(noisegate_rn, "person_id",`},
		"what happens to conflicts":       {`r.rn <= 5`, `r.rn <= 5 ON CONFLICT DO NOTHING`},
		"what is returned":                {`r.rn <= 5`, `r.rn <= 5 RETURNING 1`},
		"an order":                        {`r.rn <= 5`, `r.rn <= 5 ORDER BY r.c0`},
		"a limit":                         {`r.rn <= 5`, `r.rn <= 5 LIMIT 9`},
		"a value of several rows":         {`t."ward" AS c0`, `pg_catalog.max(t."ward") OVER () AS c0`},
		"a value that may raise an error": {`t."ward" AS c0`, `(1 / t."ward") AS c0`},
		"a value from another query":      {`t."ward" AS c0`, `(SELECT pg_catalog.count(*) FROM ONLY "public"."people") AS c0`},
		"a column that a copy has not":    {`"ward", "reason") SELECT`, `"ward", "note") SELECT`},
		"a column that is left out":       {`, "reason") SELECT u.unit, r.rn, r.c0, r.c1 `, `) SELECT u.unit, r.rn, r.c0 `},
		"columns that changed places":     {`"ward", "reason")`, `"reason", "ward")`},
		"a value of another type":         {`r.c0, r.c1 `, `r.c0, r.c0 `},
		"the seed":                        {`t."ward" AS c0`, `$1::integer AS c0`},
		"the seed taken for 0":            {`t."ward" AS c0`, `($1::integer + t."ward") AS c0`},
		"a bound by the seed":             {`t."ward" AS c0`, `(t."ward" / (1 + $1::integer)) AS c0`},
		"another parameter":               {`$1::bigint`, `$2::bigint`},
		"another statement":               {`r.rn <= 5`, `r.rn <= 5; DELETE FROM "public"."visits"`},
	} {
		changed := strings.Replace(fill, c[0], c[1], 1)
		if changed == fill {
			t.Errorf("%s: nothing changed", name)
		}
		if prove(units, changed, nil) == nil {
			t.Errorf("%s: proven", name)
		}
	}
	for name, c := range map[string][2]string{
		"ids of others":                {`t."person_id" AS id`, `t."ward" AS id`},
		"ids of nobody":                {` WHERE (t."person_id" IS NOT NULL)`, ``},
		"an id that may raise":         {`t."person_id" AS id`, `(1 / t."person_id") AS id`},
		"an id that is there already":  {` ON CONFLICT DO NOTHING`, ``},
		"an id that takes a number":    {`ON CONFLICT DO NOTHING`, `ON CONFLICT (id) DO UPDATE SET unit = 1`},
		"ids and numbers":              {`(id) SELECT DISTINCT t."person_id" AS id`, `(id, unit) SELECT DISTINCT t."person_id" AS id, t."ward"`},
		"another table":                {`"units_1"`, `"visits_7"`},
		"ids of other rows of a query": {`SELECT DISTINCT`, `SELECT`},
	} {
		changed := strings.Replace(units, c[0], c[1], 1)
		if changed == units {
			t.Errorf("%s: nothing changed", name)
		}
		if prove(changed, fill, nil) == nil {
			t.Errorf("%s: proven", name)
		}
	}
	for name, change := range map[string]func([]Pin){
		"no key of rows":              func(p []Pin) { p[1].Keys = nil },
		"a key that may be NULL":      func(p []Pin) { p[1].Columns[0].NotNull = false },
		"a source that is not pinned": func(p []Pin) { p[1].OID = 99 },
	} {
		if prove(units, fill, change) == nil {
			t.Errorf("%s: proven", name)
		}
	}
}

// Ranks of a copy are those of its sets, among the rows that it keeps.
func TestUnsafeCopiesWithRanks(t *testing.T) {
	const (
		units = `INSERT INTO "noisegate_prepared"."units_1" (id) SELECT DISTINCT t."person_id" AS id FROM ONLY "public"."visits" AS t ` +
			`WHERE (t."person_id" IS NOT NULL) ON CONFLICT DO NOTHING`
		hash = `pg_catalog.hashtextextended(COALESCE(v.c0::pg_catalog.text, ''), pg_catalog.hashint8extended(v.id::bigint, $1::bigint))`
		fill = `INSERT INTO "noisegate_prepared"."visits_7" ("person_id", noisegate_rn, noisegate_group_1, noisegate_row_1, "ward", "minutes") ` +
			`SELECT u.unit, r.rn, r.g0, r.n0, r.c0, r.c1 FROM (SELECT v.*, pg_catalog.dense_rank() OVER (PARTITION BY v.id ORDER BY ` + hash +
			`, v.c0) AS g0, pg_catalog.row_number() OVER (PARTITION BY v.id, ` + hash + `, v.c0 ORDER BY v.rn) AS n0 FROM (SELECT t."person_id" AS id, ` +
			`pg_catalog.row_number() OVER (PARTITION BY t."person_id" ORDER BY pg_catalog.hashint8extended(t."visit_id"::bigint, $1::bigint), t."visit_id") AS rn, ` +
			`t."ward" AS c0, t."minutes" AS c1 FROM ONLY "public"."visits" AS t WHERE (t."person_id" IS NOT NULL)) AS v WHERE v.rn <= 5) AS r ` +
			`JOIN ONLY "noisegate_prepared"."units_1" AS u ON u.id = r.id WHERE r.rn <= 5`
		numbered = `SELECT NOT EXISTS (SELECT FROM ONLY "noisegate_prepared"."units_1" GROUP BY id HAVING pg_catalog.count(*) > 1) AND ` +
			`NOT EXISTS (SELECT FROM ONLY "noisegate_prepared"."units_1" GROUP BY unit HAVING pg_catalog.count(*) > 1)`
	)
	prove := func(fill string) error {
		on, pins := town()
		pins[1].Columns[0].NotNull = true
		pins[1].Keys = pins[1].Keys[:1]
		over, _ := copiedByWard()
		c := over.Tables[0]
		c.Columns = slices.Concat(c.Columns[:2:2], c.Columns[4:], c.Columns[2:4])
		return Build(Copying{Units: units, Numbered: numbered, Added: added(units), Insert: fill, Copy: c, UnitsTable: "units_1", Pins: pins}, on)
	}
	if err := prove(fill); err != nil {
		t.Fatal("as it is printed:", err)
	}
	for name, c := range map[string][2]string{
		"groups of all units":          {`dense_rank() OVER (PARTITION BY v.id ORDER`, `dense_rank() OVER (ORDER`},
		"groups of other units":        {`dense_rank() OVER (PARTITION BY v.id ORDER`, `dense_rank() OVER (PARTITION BY v.c0 ORDER`},
		"groups of a part of a unit":   {`dense_rank() OVER (PARTITION BY v.id ORDER`, `dense_rank() OVER (PARTITION BY v.id, v.c1 ORDER`},
		"groups by other columns":      {`, v.c0) AS g0`, `, v.c1) AS g0`},
		"groups by more":               {`, v.c0) AS g0`, `, v.c0, v.c1) AS g0`},
		"groups by a part":             {`, v.c0) AS g0`, `) AS g0`},
		"groups with gaps":             {`pg_catalog.dense_rank() OVER`, `pg_catalog.rank() OVER`},
		"rows in place of groups":      {`pg_catalog.dense_rank() OVER`, `pg_catalog.row_number() OVER`},
		"rows of all units":            {`row_number() OVER (PARTITION BY v.id, `, `row_number() OVER (PARTITION BY `},
		"rows of a unit":               {`(PARTITION BY v.id, ` + hash + `, v.c0 ORDER BY v.rn)`, `(PARTITION BY v.id ORDER BY v.rn)`},
		"rows of a part of a group":    {`, v.c0 ORDER BY v.rn)`, `, v.c0, v.c1 ORDER BY v.rn)`},
		"rows that tie":                {`ORDER BY v.rn) AS n0`, `ORDER BY v.c1) AS n0`},
		"groups in place of rows":      {`pg_catalog.row_number() OVER (PARTITION BY v.id, `, `pg_catalog.dense_rank() OVER (PARTITION BY v.id, `},
		"ranks before the cut":         {` AS v WHERE v.rn <= 5) AS r`, ` AS v) AS r`},
		"a cut of more":                {`WHERE v.rn <= 5)`, `WHERE v.rn <= 6)`},
		"a group that is the rank":     {`r.rn, r.g0, r.n0`, `r.rn, r.rn, r.n0`},
		"a row that is the rank":       {`r.rn, r.g0, r.n0`, `r.rn, r.g0, r.rn`},
		"ranks that changed places":    {`r.g0, r.n0`, `r.n0, r.g0`},
		"a rank that is another value": {`r.g0, r.n0`, `r.c0, r.n0`},
	} {
		changed := strings.Replace(fill, c[0], c[1], 1)
		if changed == fill {
			t.Errorf("%s: nothing changed", name)
		}
		if prove(changed) == nil {
			t.Errorf("%s: proven", name)
		}
	}
}

// Numbers of rows are a key of the rows that were numbered, and no longer once these are joined.
func TestUnsafeNumbersOfRows(t *testing.T) {
	for rows, proven := range map[string]bool{
		`(SELECT q.id, q.rn, q.m FROM (INNER) AS q)`:                                                    true,
		`(SELECT q.id, q.rn, s."shop_id" AS m FROM (INNER) AS q CROSS JOIN ONLY "public"."shops" AS s)`: false,
	} {
		on, pins := town()
		pins[1].Columns[0].NotNull = true
		sql, args := expand(`SELECT @count(*)::@text FROM (SELECT v.m, @row_number() OVER (PARTITION BY v.id ORDER BY v.rn) AS n FROM ` +
			strings.Replace(rows, "INNER", `SELECT t."person_id" AS id, t."minutes" AS m, @row_number() OVER (PARTITION BY t."person_id" ORDER BY t."visit_id") AS rn `+
				`FROM ONLY "public"."visits" AS t WHERE (t."person_id" IS NOT NULL)`, 1) + ` AS v) AS w WHERE w.n <= «5»::bigint AND (w.m > «3»::integer)`)
		if err := Statement(sql, args, on,
			Claim{Groups: big.NewInt(1), PerGroup: []*big.Int{big.NewInt(5)}, Pins: pins}); (err == nil) != proven {
			t.Errorf("%s: %v", sql, err)
		}
	}
}
