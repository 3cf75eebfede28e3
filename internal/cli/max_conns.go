package cli

import (
	"cmp"
	"log/slog"
	"slices"

	"rankcache/internal/doctor"
	"rankcache/internal/httpserve"
)

// files returns how many the connections of an address take.
func (a FlagAddr) files() int { return a.conns() * cmp.Or(a.Files, 1) }

func (a FlagAddr) conns() int { return cmp.Or(a.Conns, httpserve.DefaultMaxConns) }

// inUse returns which of the addresses are listened on with connections of their own.
func inUse(addrs []FlagAddr) (owners []int) {
	for i, a := range addrs {
		shared := i+1 < len(addrs) && addrs[i+1].Shares && addrs[i+1].Addr != ""
		if !a.Shares && (a.Addr != "" || shared) {
			owners = append(owners, i)
		}
	}
	return owners
}

// Conns returns what the connections of the addresses take.
func Conns(addrs []FlagAddr) (all []doctor.Conns) {
	for _, i := range inUse(addrs) {
		all = append(all, doctor.Conns{Name: "--" + addrs[i].Flag, Files: addrs[i].files()})
	}
	return all
}

// maxConns shares the limit of open files among the addresses: what is short is taken from those that want most.
func maxConns(limit uint64, addrs []FlagAddr, log *slog.Logger) []int {
	owners := inUse(addrs)
	slices.SortStableFunc(owners, func(i, j int) int { return addrs[i].files() - addrs[j].files() })
	room, most := limit-min(doctor.OtherFiles, limit/2), make([]int, len(addrs))
	for n, i := range owners {
		a := addrs[i]
		may := min(uint64(a.files()), room/uint64(len(owners)-n))
		room -= may
		if most[i] = max(1, int(may)/cmp.Or(a.Files, 1)); most[i] < a.conns() {
			log.Warn("the limit of open files is too low for all connections: fewer are open at once", "port", a.Flag, "connections", most[i], "wanted", a.conns(), "open_files", limit)
		}
	}
	for i, a := range addrs {
		if a.Shares {
			most[i] = most[i-1]
		}
	}
	return most
}
