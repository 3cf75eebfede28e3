package compat

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"rankcache"
	"rankcache/class"
	"rankcache/rooms"
)

const maxGroupLists = 50 // how many groups of an answer have lists of their own

type groupList struct {
	Group string `json:"group_id"`
	List  []row  `json:"rank_list"`
}

// groups adds to a list what it has of groups.
type groups struct {
	lists
	r       *listRequest
	kind    *rooms.Class
	at, now time.Time
}

// add adds the places of the groups that go with the board, and the lists of these.
func (g groups) add(ctx context.Context, board class.Board, to *listAnswer) error {
	if !g.r.asked.allGroups && !g.r.asked.someGroups {
		return nil
	}
	err := g.addPlaces(ctx, board.Dims, to)
	if err == nil {
		err = g.addLists(ctx, board.Dims, to)
	}
	if _, gone := errors.AsType[problem](err); gone && g.r.asked.all { // all that there is
		return nil
	}
	return err
}

// boardOf returns the board of a class that has some of the dimensions.
func (g groups) boardOf(name string, dims map[string]string) (class.Board, error) {
	kind := g.cfg.Classes().Class(name)
	if kind == nil { // another rooms file came into force
		return class.Board{}, notFound("unknown_class", "No such class", "the class of the groups is not in the rooms file any more")
	}
	own := maps.Clone(dims)
	maps.DeleteFunc(own, func(name, _ string) bool { return !slices.Contains(kind.Dimensions(), name) })
	return boardAt(kind, own, g.at, g.now)
}

// addPlaces adds the places of the best groups, or of those that are asked for.
func (g groups) addPlaces(ctx context.Context, dims map[string]string, to *listAnswer) error {
	board, err := g.boardOf(g.kind.Group, dims)
	if err != nil {
		return err
	}
	q := g.r.query(board.ID)
	if g.r.asked.allGroups {
		q.Limit = maxLimit
	}
	for _, group := range g.r.Groups {
		q.Members = append(q.Members, string(group))
	}
	a := rankcache.One(ctx, g.cfg.Reader, q)
	if a.Err != nil {
		return a.Err
	}
	to.Groups = rowsOf(&a)
	for i := range a.Own {
		if a.Own[i].Err != nil {
			return a.Own[i].Err
		}
		to.Groups = append(to.Groups, rowOf(&a.Own[i].Standing, a.Form))
	}
	return nil
}

// addLists adds the list of each group, where the class feeds one that has the group as a dimension.
func (g groups) addLists(ctx context.Context, dims map[string]string, to *listAnswer) error {
	members, dim := g.membersOf()
	if members == "" {
		return nil
	}
	var qs []rankcache.Query
	for _, group := range to.Groups[:min(len(to.Groups), maxGroupLists)] {
		if class.CheckDimension(group.Member) != nil { // no member was ever counted for it
			continue
		}
		own := maps.Clone(dims)
		if own == nil {
			own = make(map[string]string)
		}
		own[dim] = group.Member
		board, err := g.boardOf(members, own)
		if err != nil {
			return err
		}
		q := g.r.query(board.ID)
		q.Limit = int(*g.r.Limit)
		qs = append(qs, q)
		to.GroupLists = append(to.GroupLists, groupList{Group: group.Member})
	}
	as := make([]rankcache.Answer, len(qs))
	g.cfg.Reader.Read(ctx, qs, as)
	for i := range as {
		if as[i].Err != nil {
			return as[i].Err
		}
		to.GroupLists[i].List = rowsOf(&as[i])
	}
	return nil
}

// membersOf returns the class that the class feeds with each group's members, and its dimension that has the group.
func (g groups) membersOf() (name, dim string) {
	for _, places := range g.kind.Feeds {
		if places.Class != g.kind.Group || places.By == "" {
			continue
		}
		for _, f := range g.kind.Feeds {
			for dim, by := range f.Dims {
				if by == places.By {
					return f.Class, dim
				}
			}
		}
	}
	return "", ""
}
