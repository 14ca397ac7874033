// Package auth turns bearer tokens into principals.
//
// It knows JSON Web Tokens, keys, roles and groups. It does not know HTTP, budgets or queries: which role a route needs is
// httpapi's business, what a principal may spend is the gateway's. Tokens are checked against a fixed list of algorithms
// that belongs to the kind of key that was configured, so that no token chooses how it is verified.
package auth

import (
	"slices"
	"strings"

	"noisegate.example/internal/naming"
)

// Role is what a principal may do. The zero Role is none.
type Role string

// The roles.
const (
	Analyst   Role = "analyst"   // asks questions
	Steward   Role = "steward"   // sets policies and budgets; sees no answers by that role
	ML        Role = "ml"        // buys private labels
	Collector Role = "collector" // hands on reports of devices
)

// Principal is an authenticated caller.
type Principal struct {
	Subject string   // who it is; budgets and answers belong to it
	Roles   []Role   // sorted, without duplicates
	Groups  []string // sorted, without duplicates: the groups claim, and those of each role that has some
}

// Has reports whether the principal holds the role.
func (p Principal) Has(role Role) bool { return slices.Contains(p.Roles, role) }

// In reports whether the principal belongs to the group.
func (p Principal) In(group string) bool { return slices.Contains(p.Groups, group) }

// groupOf is the group of everyone with a role; "" for none. They also belong to the same name with [rolePrefix].
func groupOf(role Role) string {
	switch role {
	case Analyst:
		return "analysts"
	case ML:
		return "ml"
	default:
		return ""
	}
}

// rolePrefix begins the second name of a role's group, which no group of a token has: those that the identity provider gives share all
// other names with groups of roles, under which there are accounts.
const rolePrefix = "role:"

// NewPrincipal checks a subject and completes the groups. Roles that are not known are left out. ok is false when the
// subject cannot name an account, see [ValidName], or a group takes a name of roles. What cannot be a group is left out, and nothing else,
// since groups carry caps; see [ValidGroup].
func NewPrincipal(subject string, roles, groups []string) (p Principal, ok bool) {
	if !ValidName(subject) || slices.ContainsFunc(groups, func(group string) bool { return strings.HasPrefix(group, rolePrefix) }) {
		return Principal{}, false
	}
	p.Subject = subject
	for _, name := range roles {
		switch role := Role(name); role {
		case Analyst, Steward, ML, Collector:
			p.Roles = append(p.Roles, role)
			if group := groupOf(role); group != "" {
				p.Groups = append(p.Groups, group, rolePrefix+group)
			}
		default: // a role of some other program
		}
	}
	for _, group := range groups {
		if ValidGroup(group) {
			p.Groups = append(p.Groups, group)
		}
	}
	slices.Sort(p.Roles)
	slices.Sort(p.Groups)
	p.Roles, p.Groups = slices.Compact(p.Roles), slices.Compact(p.Groups)
	return p, true
}

// ValidName reports whether a text can name an account that is new, and be the subject of a token; see [naming.Valid].
func ValidName(name string) bool { return naming.Valid(name) }

// ValidGroup reports whether a text can be a group of a token, which may have an account from before names were held to [ValidName].
func ValidGroup(name string) bool { return naming.Taken(name) }
