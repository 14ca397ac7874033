package suggest_test

import (
	"errors"
	"regexp"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/testfiles"
	"noisegate.example/sqlrewrite"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/steps"
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
  values manager_staff_id 1 2
staff
  staff_id integer not null unique
  values staff_id 1 2
film
  film_id integer not null unique
  title   text not null
  values title ALI BIG
film_category
  film_id     integer not null
  category_id integer not null
category
  category_id integer not null unique
  name        text not null
  values name Action Sports
inventory
  inventory_id integer not null unique
  film_id      integer not null
  store_id     integer not null
language
  language_id integer not null unique
  name        text not null`
)

// Questions as people typed them: each is answered as it is, or where the corpus says so, a refusal suggests a form that is. That they are
// answered over data, and with that meaning, integration.TestJourneys holds.
func TestJourneys(t *testing.T) {
	snapshots := map[string]*catalog.Snapshot{}
	for name, tables := range map[string]string{"census": journeyCensus, "pagila": journeyPagila} {
		snapshots[name] = rewritetest.ParseSnapshot(t, tables, testfiles.Own(t, "corpus/"+name+".policy.yaml"))
	}
	o := rewritetest.Sharp()
	o.Now = rewritetest.GoldenNow()
	questions := regexp.MustCompile(`(?s)-- \[(J\d+)\] (\w+) (\w+)\n(.*?;)\n`).FindAllStringSubmatch(testfiles.Own(t, "corpus/journeys.sql")+"\n", -1)
	if len(questions) != 40 {
		t.Fatalf("%d questions", len(questions))
	}
	for _, m := range questions {
		id, dataset, verdict, sql := m[1], m[2], m[3], m[4]
		_, _, err := pipeline.Read(sql, snapshots[dataset], o)
		if err == nil {
			continue
		}
		var told *fault.Error
		err = sqlrewrite.Suggest(steps.WithoutClock(t.Context()), err, sql, snapshots[dataset], o)
		if errors.As(err, &told); verdict == "answer" || len(suggestionsOf(told)) == 0 {
			t.Errorf("%s, %s: %v\n%s\n%s", id, verdict, err, told.Hint, sql)
		}
	}
}
