package demodata

import "time"

// DefaultRows is the number of people in Adult's training data.
const DefaultRows = 32561

// MinRows is the smallest census in which every marital status can be expected to occur.
const MinRows = 2000

// MaxVisits is the largest number of visits of one person.
const MaxVisits = 46

// Person is one row of the census. Empty strings are NULL.
type Person struct {
	ID            int32
	Age           int16
	Workclass     string
	Education     string
	EducationNum  int16
	MaritalStatus string
	Occupation    string
	Relationship  string
	Race          string
	Sex           string
	CapitalGain   int32
	CapitalLoss   int32
	HoursPerWeek  int16
	NativeCountry string
	Income        string
}

// Visit is one row of the event table.
type Visit struct {
	ID       int32
	PersonID int32
	Day      time.Time
	Region   string
	Cents    int64
}

// seed makes these people and no others.
const seed = 19940501 // Adult was extracted from the census of 1994

// People invents a census of n people, numbered from 1; n is at least [MinRows].
func People(n int) []Person {
	if n < MinRows {
		panic("demodata: too few people")
	}
	r := &random{state: seed}
	theOne := r.below(n)
	countries := r.deck(nativeCountry, n-1)
	statuses := r.deck(maritalStatus, n)
	people := make([]Person, n)
	for i := range people {
		country := TheOne
		switch {
		case i < theOne:
			country = countries[i]
		case i > theOne:
			country = countries[i-1]
		}
		people[i] = r.person(int32(i+1), statuses[i], country)
	}
	return people
}

func (r *random) person(id int32, status, country string) Person {
	home := householdOf(status)
	p := Person{
		ID:            id,
		Age:           int16(r.age(home)),
		MaritalStatus: status,
		NativeCountry: country,
		Workclass:     r.pick(workclass),
		Race:          r.pick(race),
		Sex:           "Female",
	}
	if r.perMille(home.men) {
		p.Sex = "Male"
	}
	p.Relationship = role(r.pick(home.roles), p.Sex)
	learned := r.level(p.Age)
	p.Education, p.EducationNum = learned.name, int16(learned.number)
	if p.Workclass != unknown && p.Workclass != "Never-worked" {
		p.Occupation = r.pick(occupation)
	}
	p.HoursPerWeek = int16(r.hours(p.Age))
	r.money(&p)
	return p
}

// age draws again what falls outside Adult's range, so that nobody piles up at its ends.
func (r *random) age(home household) int {
	for {
		if age := r.bell(home.meanAge, home.ageSpread); age >= 17 && age <= 90 {
			return age
		}
	}
}

// role names a spouse by sex.
func role(drawn, sex string) string {
	switch {
	case drawn != "Spouse":
		return drawn
	case sex == "Male":
		return "Husband"
	default:
		return "Wife"
	}
}

// level draws an education that somebody of that age can have.
func (r *random) level(age int16) level {
	total := 0
	for _, l := range education {
		if l.from <= int(age) {
			total += l.count
		}
	}
	at := r.below(total)
	for _, l := range education {
		if l.from > int(age) {
			continue
		}
		if at < l.count {
			return l
		}
		at -= l.count
	}
	panic("demodata: weights do not add up")
}

// hours draws a working week: 40 hours for half of all people.
func (r *random) hours(age int16) int {
	mean := 42
	switch {
	case age < 22:
		mean = 28
	case age > 64:
		mean = 30
	case r.perMille(520):
		return 40
	}
	return min(max(r.bell(mean, 13), 1), 99)
}

// money draws capital gains and losses, and who earns more than 50,000: a quarter of all people, mostly the educated,
// the married and those in mid-life.
func (r *random) money(p *Person) {
	switch {
	case r.perMille(5):
		p.CapitalGain = 99999
	case r.perMille(78):
		p.CapitalGain = int32(r.between(114, 15024))
	case r.perMille(51):
		p.CapitalLoss = int32(min(max(r.bell(1870, 380), 155), 4356))
	}
	chance := 12 * (int(p.EducationNum) - 7)
	if p.MaritalStatus == "Married-civ-spouse" || p.MaritalStatus == "Married-AF-spouse" {
		chance = chance*5 + 265
	}
	if p.Age < 26 || p.HoursPerWeek < 30 {
		chance /= 4
	}
	if p.CapitalGain > 7000 {
		chance = 950
	}
	p.Income = "<=50K"
	if r.perMille(chance) {
		p.Income = ">50K"
	}
}

// visitSeed is apart from the census's, so that the visits do not depend on how people are drawn.
const visitSeed = seed + 1

// Visits invents 1 to [MaxVisits] visits in the year 2025 for each of n people, in order of person, and hands them to
// yield one by one. Most people come a few times to the region where they live; one in twenty comes often.
func Visits(n int, yield func(Visit) error) error {
	r := &random{state: visitSeed}
	regions := Regions()
	newYear := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	id := int32(0)
	for person := range n {
		home := regions[r.below(len(regions))]
		visits := 1 + r.waiting(350, MaxVisits-1)
		if r.perMille(50) {
			visits = r.between(1, MaxVisits)
		}
		for range visits {
			id++
			v := Visit{ID: id, PersonID: int32(person + 1), Day: newYear.AddDate(0, 0, r.below(365)), Region: home, Cents: r.cents()}
			if r.perMille(200) {
				v.Region = regions[r.below(len(regions))]
			}
			if err := yield(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// cents draws an amount of money: a few tens as a rule, now and then several hundreds.
func (r *random) cents() int64 {
	cents := int64(r.between(150, 6000))
	for range r.waiting(700, 6) {
		cents *= 2
	}
	return cents
}
