package catalog

import (
	"fmt"
	"runtime/debug"
	"slices"
	"syscall"
	"testing"
	"time"
)

// manyShapes holds a policy line for each way in which a table's rows reach a unit.
var manyShapes = map[string]string{
	"kinds":      "unit: {row: id}",
	"columns":    "unit: {column: person}, max_rows: 2", // and no key says whose they are
	"references": "unit: {column: person}, max_rows: 2",
	"paths":      "unit: {via: person, to: people}, max_rows: 2",
	"chain":      "unit: {column: id}, max_rows: 2",
	"circle":     "unit: {column: id}, max_rows: 2",
	"public":     "public: true",
	"domains":    "unit: {column: person}, max_rows: 2, columns: {kind: {domain: {table: p00000, column: kind}}}",
	"partitions": "unit: {column: person}, max_rows: 2",
	"unknown":    "unit: {row: id}",
	"no key":     "unit: {via: person, to: people}",
	"no path":    "unit: {via: person, to: nobody}",
}

// manyTables is a policy of n tables of a shape, and their schema.
func manyTables(t *testing.T, n int, shape string) (*Policy, *Schema) {
	t.Helper()
	p, problems := Parse("version: 1\ndataset: d\nbudgets: [{dataset: true, form: pure, epsilon: 1}]\n" +
		"tables: {people: {unit: {row: id}}, t: {" + manyShapes[shape] + "}}")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	like := p.Tables[1]
	p.Tables = p.Tables[:1]
	s := &Schema{references: []reference{}}
	add := func(name string) *TableInfo {
		info := &TableInfo{TableName: TableName{DefaultSchema, name}, OID: uint32(len(s.Tables) + 1), Kind: PlainTable, Readable: true,
			Unique: []string{"id"}}
		info.root = info.OID
		for i, column := range []string{"id", "person", "kind"} {
			info.Columns = append(info.Columns, &ColumnInfo{Name: column, AttNum: int16(i + 1), TypeOID: 23, TypMod: -1, TypeName: "integer",
				Type: Int4, NotNull: true})
		}
		s.Tables = append(s.Tables, info)
		return info
	}
	refer := func(from *TableInfo, column string, to *TableInfo) {
		from.ForeignKeys = append(from.ForeignKeys, ForeignKey{column, to.TableName, "id"})
		s.references = append(s.references, reference{from.OID, to.OID})
	}
	people := add("people")
	first, last := people, people
	for i := range n {
		policy := *like
		policy.Name = fmt.Sprintf("t%05d", i)
		policy.pos.Line += i
		if shape == "unknown" {
			add(fmt.Sprintf("u%05d", i))
			p.Tables = append(p.Tables, &policy)
			continue
		}
		info := add(policy.Name)
		if first == people {
			first = info
		}
		switch shape {
		case "references", "paths":
			refer(info, "person", people)
		case "chain":
			refer(info, "id", last)
		case "circle":
			if info != first {
				refer(info, "id", last)
			}
			if i == n-1 {
				refer(first, "id", info)
			}
		case "partitions":
			info.Kind = PartitionedTable
			if info != first {
				info.PartOf, info.root = []uint32{first.OID}, first.OID
			}
		case "public":
			s.Domains = append(s.Domains, DomainValues{From: ColumnRef{info.TableName, "kind"}, Keys: []Key{{Text: "1"}}})
		case "domains":
			public := add(fmt.Sprintf("p%05d", i))
			s.Domains = append(s.Domains, DomainValues{From: ColumnRef{public.TableName, "kind"}, Keys: []Key{{Text: "1"}}})
			p.Tables = append(p.Tables, &TablePolicy{TableName: public.TableName, Public: true})
			kind, domain := *like.Columns[0], *like.Columns[0].Domain
			domain.From.Table = public.TableName
			kind.Domain = &domain
			policy.Columns = []*ColumnPolicy{&kind}
		}
		last = info
		p.Tables = append(p.Tables, &policy)
	}
	slices.SortFunc(p.Tables, func(a, b *TablePolicy) int { return compareNames(a.TableName, b.TableName) })
	return p, s
}

// Checking takes time in proportion to the tables: of eight times as many less than 24 times, where a look at all for each would take 64.
func TestChecksOfManyTables(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	const few, times, most = 1500, 8, 24
	for shape := range manyShapes {
		t.Run(shape, func(t *testing.T) {
			small := checkTime(t, few, shape, 0)
			allowed := most * max(small, 5*time.Millisecond)
			large := checkTime(t, few*times, shape, allowed)
			t.Logf("%d tables take %s, %d take %s", few, small, few*times, large)
			if large > allowed {
				t.Errorf("%d tables take %s of a processor, and %d take %s", few, small, few*times, large)
			}
		})
	}
}

// checkTime is the least of up to three times that a check takes of the process's processors; the last is the first that is short enough.
func checkTime(t *testing.T, n int, shape string, enough time.Duration) (least time.Duration) {
	t.Helper()
	p, s := manyTables(t, n, shape)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it takes as long as what others left
	wrong := map[string]bool{"circle": true, "unknown": true, "no key": true, "no path": true}[shape]
	for range 3 {
		start := processorTime(t)
		snapshot, problems := Check(p, s)
		if took := processorTime(t) - start; least == 0 || took < least {
			least = took
		}
		switch {
		case wrong && len(problems) != n, !wrong && len(problems) > 0:
			t.Fatalf("%d problems: %v", len(problems), problems[:min(3, len(problems))])
		case !wrong && len(snapshot.Tables) != len(p.Tables):
			t.Fatalf("%d tables", len(snapshot.Tables))
		}
		if least <= enough || least > time.Second { // none of the three is fast enough
			break
		}
	}
	return least
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
