package tenants

import (
	"fmt"
	"slices"
	"strings"
)

// Role is what a member is in a tenant; it decides what she may do there.
type Role string

// The roles, from the one that may do most. The database knows the same list.
const (
	Owner    Role = "owner"
	Admin    Role = "admin"
	Builder  Role = "builder"
	Reviewer Role = "reviewer"
	Finance  Role = "finance"
	Auditor  Role = "auditor"
	Viewer   Role = "viewer"
)

// Action is a kind of thing that a member does and that not everybody may do.
type Action string

// The actions. Answering one's own review is not among them: that right comes with
// the seat, also for people who are no members.
const (
	Read            Action = "read"             // see pipelines, runs and reviews
	StartRuns       Action = "start_runs"       // start, pause, cancel, retry runs
	BuildPipelines  Action = "build_pipelines"  // make, change and publish pipelines
	Decide          Action = "decide"           // be asked by a review as a member
	SeeMoney        Action = "see_money"        // see caps, spend and prices
	SetCaps         Action = "set_caps"         // change how much may be spent
	SeeAudit        Action = "see_audit"        // read the audit log
	ManageMembers   Action = "manage_members"   // add and remove members, give roles
	ManageWorkspace Action = "manage_workspace" // change the name, zone, keys and policies
	AllowSharing    Action = "allow_sharing"    // let links to runs be given to people outside
)

// rules says who may do what, and how a page words it: "Only … can <words>."
var rules = map[Action]struct {
	words string
	roles []Role
}{
	Read:            {"look at this workspace", Roles()},
	StartRuns:       {"start and change runs", []Role{Owner, Admin, Builder}},
	BuildPipelines:  {"build and publish pipelines", []Role{Owner, Admin, Builder}},
	Decide:          {"decide reviews", []Role{Owner, Admin, Builder, Reviewer, Finance}},
	SeeMoney:        {"see what is spent", []Role{Owner, Admin, Builder, Finance, Auditor}},
	SetCaps:         {"change spend caps", []Role{Owner, Admin, Finance}},
	SeeAudit:        {"read the audit log", []Role{Owner, Admin, Auditor}},
	ManageMembers:   {"add people and change their roles", []Role{Owner, Admin}},
	ManageWorkspace: {"change the settings of this workspace", []Role{Owner, Admin}},
	AllowSharing:    {"let people outside look at runs", []Role{Owner}},
}

// sentences tell a role to the person who has it or gives it.
var sentences = map[Role]string{
	Owner:    "can do everything, and make others owners",
	Admin:    "can build, run, set spend caps and manage people and settings",
	Builder:  "can build and run pipelines and see what they cost; cannot change spend caps",
	Reviewer: "can look at everything but money, and decides reviews",
	Finance:  "can see and cap what is spent, and decides reviews; cannot build or run",
	Auditor:  "can look at everything, including money and the audit log; changes nothing",
	Viewer:   "can look at pipelines and runs; changes nothing",
}

// Roles lists all roles, from the one that may do most.
func Roles() []Role {
	return []Role{Owner, Admin, Builder, Reviewer, Finance, Auditor, Viewer}
}

// ParseRole reads a role's name; any other text is an *Invalid.
func ParseRole(text string) (Role, error) {
	if role := Role(text); slices.Contains(Roles(), role) {
		return role, nil
	}
	return "", &Invalid{"role", "Please choose one of the roles."}
}

// May tells whether the role is enough for the action. An unknown role or action is
// never enough.
func (r Role) May(action Action) bool { return slices.Contains(rules[action].roles, r) }

// MayGrant tells whether somebody with this role may give the other: an admin gives
// any role but owner, so nobody hands out more than she holds.
func (r Role) MayGrant(other Role) bool {
	if !slices.Contains(Roles(), other) {
		return false
	}
	return r == Owner || r == Admin && other != Owner
}

// Sentence says what the role can do, to go after a name: "can build and run …".
func (r Role) Sentence() string { return sentences[r] }

// maxHelpers is how many people a refusal names: enough to reach one, few enough to
// read.
const maxHelpers = 3

// Refusal says who may do the action and whom of the given members to ask.
func (a Action) Refusal(members []Membership) string {
	rule := rules[a]
	titles := make([]string, len(rule.roles))
	for i, role := range rule.roles {
		titles[i] = article(role)
	}
	sentence := fmt.Sprintf("Only %s can %s.", either(titles), rule.words)
	helpers := make([]string, 0, maxHelpers)
	for _, member := range members {
		if member.Role.May(a) && len(helpers) < maxHelpers {
			helpers = append(helpers, member.User.Name)
		}
	}
	if len(helpers) == 0 {
		return sentence
	}
	return sentence + " Ask " + either(helpers) + "."
}

func article(role Role) string {
	if strings.ContainsRune("aeiou", rune(role[0])) {
		return "an " + string(role)
	}
	if role == Finance {
		return "a finance member"
	}
	return "a " + string(role)
}

// either joins names as in "Ana, Ben or Chi".
func either(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Forbidden is the error of somebody who does what her role is not enough for.
type Forbidden struct {
	Action Action
	Role   Role
}

// Error says which role fell short of what.
func (e *Forbidden) Error() string {
	return fmt.Sprintf("a member with the role %s may not %s", e.Role, rules[e.Action].words)
}
