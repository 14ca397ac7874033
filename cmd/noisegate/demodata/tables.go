package demodata

// weight is a value and how often it occurs among [DefaultRows] people.
type weight struct {
	value string
	count int
}

// unknown stands for NULL in the tables.
const unknown = ""

// TheOne is the country of birth that exactly one person has.
const TheOne = "Holand-Netherlands"

// The published counts of Adult's 32,561 training rows.
var (
	maritalStatus = []weight{
		{"Married-civ-spouse", 14976}, {"Never-married", 10683}, {"Divorced", 4443}, {"Separated", 1025}, {"Widowed", 993},
		{"Married-spouse-absent", 418}, {"Married-AF-spouse", 23},
	}
	nativeCountry = []weight{ // without [TheOne], who is placed by hand
		{"United-States", 29170}, {"Mexico", 643}, {unknown, 583}, {"Philippines", 198}, {"Germany", 137}, {"Canada", 121},
		{"Puerto-Rico", 114}, {"El-Salvador", 106}, {"India", 100}, {"Cuba", 95}, {"England", 90}, {"Jamaica", 81},
		{"South", 80}, {"China", 75}, {"Italy", 73}, {"Dominican-Republic", 70}, {"Vietnam", 67}, {"Guatemala", 64},
		{"Japan", 62}, {"Poland", 60}, {"Columbia", 59}, {"Taiwan", 51}, {"Haiti", 44}, {"Iran", 43}, {"Portugal", 37},
		{"Nicaragua", 34}, {"Peru", 31}, {"France", 29}, {"Greece", 29}, {"Ecuador", 28}, {"Ireland", 24}, {"Hong", 20},
		{"Cambodia", 19}, {"Trinadad&Tobago", 19}, {"Thailand", 18}, {"Laos", 18}, {"Yugoslavia", 16},
		{"Outlying-US(Guam-USVI-etc)", 14}, {"Honduras", 13}, {"Hungary", 13}, {"Scotland", 12},
	}
	workclass = []weight{
		{"Private", 22696}, {"Self-emp-not-inc", 2541}, {"Local-gov", 2093}, {unknown, 1836}, {"State-gov", 1298},
		{"Self-emp-inc", 1116}, {"Federal-gov", 960}, {"Without-pay", 14}, {"Never-worked", 7},
	}
	occupation = []weight{
		{"Prof-specialty", 4140}, {"Craft-repair", 4099}, {"Exec-managerial", 4066}, {"Adm-clerical", 3770}, {"Sales", 3650},
		{"Other-service", 3295}, {"Machine-op-inspct", 2002}, {"Transport-moving", 1597}, {"Handlers-cleaners", 1370},
		{"Farming-fishing", 994}, {"Tech-support", 928}, {"Protective-serv", 649}, {"Priv-house-serv", 149}, {"Armed-Forces", 9},
	}
	race = []weight{
		{"White", 27816}, {"Black", 3124}, {"Asian-Pac-Islander", 1039}, {"Amer-Indian-Eskimo", 311}, {"Other", 271},
	}
)

// level is a level of education: its number in Adult, how often it occurs, and the age from which it is plausible.
type level struct {
	name          string
	number, count int
	from          int
}

var education = []level{
	{"HS-grad", 9, 10501, 18}, {"Some-college", 10, 7291, 18}, {"Bachelors", 13, 5355, 21}, {"Masters", 14, 1723, 23},
	{"Assoc-voc", 11, 1382, 19}, {"11th", 7, 1175, 17}, {"Assoc-acdm", 12, 1067, 19}, {"10th", 6, 933, 17},
	{"7th-8th", 4, 646, 17}, {"Prof-school", 15, 576, 24}, {"9th", 5, 514, 17}, {"12th", 8, 433, 17},
	{"Doctorate", 16, 413, 26}, {"5th-6th", 3, 333, 17}, {"1st-4th", 2, 168, 17}, {"Preschool", 1, 51, 17},
}

// household says what people of one marital status are like.
type household struct {
	meanAge, ageSpread int
	men                int // per mille
	roles              []weight
}

// householdOf describes each marital status. Spouses of either sex are named by [role], not drawn.
func householdOf(status string) household {
	switch status {
	case "Married-civ-spouse":
		return household{43, 12, 889, []weight{{"Spouse", 980}, {"Other-relative", 10}, {"Own-child", 10}}}
	case "Married-AF-spouse":
		return household{32, 8, 390, []weight{{"Spouse", 950}, {"Other-relative", 50}}}
	case "Never-married":
		return household{28, 9, 553, []weight{{"Not-in-family", 440}, {"Own-child", 420}, {"Unmarried", 82}, {"Other-relative", 58}}}
	case "Divorced":
		return household{43, 10, 397, []weight{{"Not-in-family", 541}, {"Unmarried", 360}, {"Own-child", 74}, {"Other-relative", 25}}}
	case "Separated":
		return household{39, 10, 384, []weight{{"Unmarried", 440}, {"Not-in-family", 410}, {"Own-child", 97}, {"Other-relative", 53}}}
	case "Widowed":
		return household{59, 12, 169, []weight{{"Not-in-family", 550}, {"Unmarried", 383}, {"Other-relative", 50}, {"Own-child", 17}}}
	case "Married-spouse-absent":
		return household{41, 12, 510, []weight{{"Not-in-family", 505}, {"Unmarried", 310}, {"Own-child", 108}, {"Other-relative", 77}}}
	default:
		panic("demodata: no household for " + status)
	}
}

// Regions are where visits happen; a public table.
func Regions() []string {
	return []string{"Centre", "Coast", "East", "Hills", "Lakes", "North", "South", "West"}
}
