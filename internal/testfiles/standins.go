package testfiles

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"noisegate.example/cmd/noisegate/demodata"
)

// standins invent files of ../shared, by name.
func standins() map[string]func(testing.TB) []byte {
	return map[string]func(testing.TB) []byte{
		"data/adult/adult.csv":             func(t testing.TB) []byte { return table(t, adult()) },
		"data/pums/PUMS_dup.csv":           func(t testing.TB) []byte { return table(t, pums(false)) },
		"data/pums/PUMS_null.csv":          func(t testing.TB) []byte { return table(t, pums(true)) },
		"data/pums/PUMS.yaml":              func(testing.TB) []byte { return metadata("row_privacy: True", "") },
		"data/pums/PUMS_dup.yaml":          func(testing.TB) []byte { return metadata("max_ids: 1", person) },
		"data/pums/PUMS_pid.yaml":          func(testing.TB) []byte { return metadata("", person) },
		"data/pums/PUMS_two_table.yaml":    func(testing.TB) []byte { return metadata("row_privacy: True", second) },
		"data/pagila/pagila-schema.sql.gz": func(t testing.TB) []byte { return packed(t, Own(t, "standin/pagila-schema.sql")) },
		"data/pagila/pagila-data.sql.gz":   func(t testing.TB) []byte { return packed(t, Own(t, "standin/pagila-data.sql")) },
	}
}

// adult are the people of `noisegate demo` in Adult's columns: as many, and as many from each country and of each marital status.
func adult() [][]string {
	rows := [][]string{strings.Split("person_id,age,workclass,fnlwgt,education,education_num,marital_status,occupation,relationship,race,sex,"+
		"capital_gain,capital_loss,hours_per_week,native_country,income", ",")}
	for _, p := range demodata.People(demodata.DefaultRows) {
		rows = append(rows, []string{number(p.ID), number(p.Age), p.Workclass, number(12285 + p.ID*7919%1000000), p.Education,
			number(p.EducationNum), p.MaritalStatus, p.Occupation, p.Relationship, p.Race, p.Sex, number(p.CapitalGain), number(p.CapitalLoss),
			number(p.HoursPerWeek), p.NativeCountry, p.Income})
	}
	return rows
}

// pums are a thousand people in columns of PUMS, each in one to four equal rows; with nulls, one row in 16 lacks each value, or its person.
func pums(nulls bool) [][]string {
	rows := [][]string{{"age", "sex", "educ", "race", "income", "married", "pid"}}
	races := map[string]int{"White": 1, "Black": 2, "Amer-Indian-Eskimo": 3, "Asian-Pac-Islander": 4, "Other": 6}
	for i, p := range demodata.People(demodata.MinRows)[:1000] {
		one := []string{number(p.Age), flag(p.Sex == "Male"), number(p.EducationNum), number(races[p.Race]),
			number(min(int(p.HoursPerWeek)*int(p.EducationNum)*100+int(p.CapitalGain), 400_000)),
			flag(strings.HasPrefix(p.MaritalStatus, "Married")), number(p.ID)}
		for range 1 + []int{0, 1, 0, 2, 0, 1, 3, 0, 1, 2}[i%10] {
			row := append([]string(nil), one...)
			for c := range row {
				if nulls && (len(rows)*7+c*31)%113 < 7 {
					row[c] = ""
				}
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func number[T ~int | ~int16 | ~int32](n T) string { return strconv.Itoa(int(n)) }

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func table(t testing.TB, rows [][]string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(rows); err != nil {
		t.Fatal("testfiles: ", err)
	}
	return b.Bytes()
}

func packed(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal("testfiles: ", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal("testfiles: ", err)
	}
	return b.Bytes()
}

// What SmartNoise's metadata says of PUMS.
const (
	values = `      age: {type: int, lower: 0, upper: 100}
      sex: {type: string}
      educ: {type: string}
      race: {type: string}
      income: {type: int, lower: 0, upper: 500000}
      married: {type: string}
`
	person = "      pid: {type: int, private_id: True}\n"
	second = "    PUMS_null:\n      max_ids: 3\n      row_privacy: False\n" + values + person
)

// metadata is that of the table PUMS with one setting more, and what follows its values.
func metadata(setting, rest string) []byte {
	return fmt.Appendf(nil, "\"\":\n  PUMS:\n    PUMS:\n      %s\n      rows: 1000\n%s%s", setting, values, rest)
}
