package compat

import (
	"rankcache"
	"rankcache/rooms"
)

// classByIDs returns the class that a request names by its ids.
func classByIDs(file *rooms.File, act, rank integer) (*rooms.Class, error) {
	kind := file.ByIDs(rooms.IDs{Act: int(act), Rank: int(rank)})
	if kind == nil {
		return nil, notFound("unknown_class", "No such class", "no class of the rooms file has ids with this actId and rankId")
	}
	return kind, nil
}

// classByName returns the class that rank_name names, with the value of its one dimension;
// nil if it is the id of a board.
func classByName(file *rooms.File, name string, value text) (*rooms.Class, map[string]string, error) {
	if kind := file.Class(name); kind != nil {
		dims, err := kind.OneDim(string(value))
		if err != nil {
			return nil, nil, badField("rank_type", "%w", err)
		}
		return kind, dims, nil
	}
	if err := rankcache.BoardID(name).Check(); err != nil {
		return nil, nil, badField("rank_name", "is no class, and %w", err)
	}
	if value != "" {
		return nil, nil, unsupported("rank_type", "rank_name %s is no class but a board, which has no types", name)
	}
	return nil, nil, nil
}
