package review

import (
	"cmp"
	"context"
	"fmt"
	"net/mail"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// member is a member as far as reviews care.
type member struct {
	ID    tenants.UserID
	Email string
	Name  string
	Zone  string
}

// invited are the people of a question after the workspace was asked about them.
type invited struct {
	seats     []SeatRow
	requester member // zero if unknown
}

// invite decides who gets a seat: each person once, members as members also where only
// their address was given, removed ones not at all, and the requester only if allowed.
func (q Question) invite(ctx context.Context, tx tenants.Tx) (invited, error) {
	people, err := spread(q.People)
	if err != nil {
		return invited{}, err
	}
	members, zone, err := findMembers(ctx, tx, people, q.Requester)
	if err != nil {
		return invited{}, err
	}
	out := invited{requester: members[q.Requester.String()]}
	for _, person := range people {
		seat, asked := q.seatFor(person, members, zone)
		if asked && !out.has(seat) {
			out.seats = append(out.seats, seat)
		}
	}
	if q.Proof != ProofSignIn {
		return out, nil
	}
	for _, seat := range out.seats {
		if seat.User.IsZero() {
			return invited{}, fmt.Errorf("%w: it needs sign-in, and %s is no member of the workspace", ErrBadQuestion, seat.Address)
		}
	}
	return out, nil
}

func (q Question) seatFor(person Person, members map[string]member, zone string) (SeatRow, bool) {
	known, isMember := members[person.key()]
	if !isMember && !person.User.IsZero() {
		return SeatRow{}, false
	}
	if !isMember {
		return SeatRow{Address: person.Email, Name: line(cmp.Or(person.Name, person.Email)), Group: line(person.Group), Zone: zone}, true
	}
	if known.ID == q.Requester && !q.AllowRequester {
		return SeatRow{}, false
	}
	return SeatRow{User: known.ID, Address: known.Email, Name: line(known.Name), Group: line(person.Group), Zone: cmp.Or(known.Zone, zone), Member: true}, true
}

func (i invited) has(seat SeatRow) bool {
	return slices.ContainsFunc(i.seats, func(other SeatRow) bool { return other.Address == seat.Address })
}

// key is what a person is found by among the members.
func (p Person) key() string {
	if !p.User.IsZero() {
		return p.User.String()
	}
	return p.Email
}

// spread makes one person of each address; a text may name several.
func spread(people []Person) ([]Person, error) {
	var out []Person
	for _, person := range people {
		if !person.User.IsZero() {
			out = append(out, person)
			continue
		}
		list, err := mail.ParseAddressList(person.Email)
		if err != nil {
			return nil, fmt.Errorf("%w: %q is no e-mail address", ErrBadQuestion, line(person.Email))
		}
		for _, address := range list {
			email, err := tenants.ParseEmail(address.Address)
			if err != nil {
				return nil, fmt.Errorf("%w: %q is no e-mail address", ErrBadQuestion, line(address.Address))
			}
			out = append(out, Person{Email: email, Name: cmp.Or(address.Name, person.Name), Group: person.Group})
		}
	}
	if len(out) > maxPeople {
		return nil, fmt.Errorf("%w: it asks %d people and may ask %d", ErrBadQuestion, len(out), maxPeople)
	}
	return out, nil
}

// findMembers gives the members among people, and the requester, by id and by address;
// and the workspace's zone.
func findMembers(ctx context.Context, tx tenants.Tx, people []Person, requester tenants.UserID) (map[string]member, string, error) {
	ids, emails := []tenants.UserID{requester}, []string{}
	for _, person := range people {
		if person.User.IsZero() {
			emails = append(emails, person.Email)
		} else {
			ids = append(ids, person.User)
		}
	}
	const query = `
		SELECT u.id, u.email, u.name, u.zone
		FROM members m JOIN users u ON u.id = m.user_id
		WHERE u.id = ANY($1) OR u.email = ANY($2)`
	rows, _ := tx.Query(ctx, query, ids, emails)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[member])
	if err != nil {
		return nil, "", fmt.Errorf("find the members to ask: %w", err)
	}
	out := make(map[string]member, 2*len(found))
	for _, m := range found {
		out[m.ID.String()], out[m.Email] = m, m
	}
	var zone string
	if err := tx.QueryRow(ctx, `SELECT zone FROM tenants`).Scan(&zone); err != nil {
		return nil, "", fmt.Errorf("read the workspace's zone: %w", err)
	}
	return out, zone, nil
}

// Lives of a link. It outlives the deadline a little, so that whoever comes too late
// reads what happened instead.
const (
	linkLife  = 30 * 24 * time.Hour
	linkGrace = 7 * 24 * time.Hour
)

func linkEnd(now time.Time, due *time.Time) time.Time {
	end := now.Add(linkLife)
	if due != nil && due.Add(linkGrace).Before(end) && due.After(now) {
		return due.Add(linkGrace)
	}
	return end
}
