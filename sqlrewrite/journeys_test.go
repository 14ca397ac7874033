package sqlrewrite

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"noisegate/catalog"
	"noisegate/internal/fault"
)

// The tables of the journeys, as far as their questions read them.
const (
	journeyCensus = `people
  person_id      integer not null unique
  age            integer
  workclass      text
  fnlwgt         integer
  education      text
  education_num  integer
  marital_status text
  occupation     text
  relationship   text
  race           text
  sex            text
  capital_gain   integer
  capital_loss   integer
  hours_per_week integer
  native_country text
  income         text`
	journeyPagila = `customer
  customer_id integer not null unique
  store_id    integer not null
  first_name  text not null
  last_name   text not null
  email       text
  active      integer
  create_date date not null
rental
  rental_id    integer not null unique
  rental_date  timestamptz not null
  inventory_id integer not null
  customer_id  integer not null references customer(customer_id)
  return_date  timestamptz
  staff_id     integer not null
payment
  payment_id   integer not null
  customer_id  integer not null
  staff_id     integer not null
  rental_id    integer not null references rental(rental_id)
  amount       numeric(5,2) not null
  payment_date timestamptz not null
store
  store_id         integer not null unique
  manager_staff_id integer not null
  values store_id 1 2
staff
  staff_id integer not null unique
  values staff_id 1 2
film
  film_id integer not null unique
  title   text not null
film_category
  film_id     integer not null
  category_id integer not null
category
  category_id integer not null unique
  name        text not null
inventory
  inventory_id integer not null unique
  film_id      integer not null
  store_id     integer not null
language
  language_id integer not null unique
  name        text not null`
)

// Questions as people typed them, of dates, parameters and other systems' forms: each is answered as it is, or a refusal suggests a form
// that is. Those of several releases are asked where they are answered.
func TestJourneys(t *testing.T) {
	const shared = "../../shared/corpus/"
	text, err := os.ReadFile(shared + "journeys.sql")
	if err != nil {
		t.Skip("../shared is absent: it holds the journeys")
	}
	snapshots := map[string]*catalog.Snapshot{}
	for name, tables := range map[string]string{"census": journeyCensus, "pagila": journeyPagila} {
		policy, err := os.ReadFile(shared + name + ".policy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		snapshots[name] = parseSnapshot(t, tables, string(policy))
	}
	o := sharp()
	o.Now = goldenNow()
	held := strings.Fields("J10 J18 J20 J28 J29 J30 J31 J32 J33 J34 J35 J36 J37 J38 J39 J40")
	for _, id := range held {
		m := regexp.MustCompile(`(?s)-- \[` + id + `\] (\w+) (\w+)\n(.*?);\n`).FindStringSubmatch(string(text) + "\n")
		if m == nil {
			t.Fatalf("%s is no question", id)
		}
		dataset, verdict, sql := m[1], m[2], m[3]
		_, _, err := Read(sql, snapshots[dataset], o)
		if err == nil {
			continue
		}
		var told *fault.Error
		if errors.As(Suggest(err, sql, snapshots[dataset], o), &told); verdict == "answer" || len(suggestionsOf(told)) == 0 {
			t.Errorf("%s, %s: %v\n%s\n%s", id, verdict, err, told.Hint, sql)
		}
	}
}
