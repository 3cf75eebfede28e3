package sidecar

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"rankcache"
	"rankcache/wire"
)

// join returns the profiles of a page if they were asked for.
func (s *DataServer) join(c *call, entries []rankcache.Entry) joined {
	if !c.args.profiles {
		return joined{}
	}
	return join(context.Background(), s.reader.profiles, entries)
}

// joinMembers is join for members that may be the memory of the request.
func (s *DataServer) joinMembers(c *call, members ...string) joined {
	if !c.args.profiles {
		return joined{}
	}
	return s.load(members)
}

func (s *DataServer) load(members []string) joined {
	own := make([]string, len(members))
	for i, m := range members {
		own[i] = strings.Clone(m)
	}
	return joinMembers(context.Background(), s.reader.profiles, own)
}

// profiles answers the two routes that ask for profiles alone.
func (s *DataServer) profiles(ctx *fasthttp.RequestCtx, c *call) *problem {
	if s.reader.profiles == nil {
		return &problem{code: CodeUnknownPath, detail: "no profile source is configured"}
	}
	if c.route == routeProfile {
		return s.profile(ctx, c)
	}
	members, p := parseBatch(ctx.PostBody())
	if p != nil {
		return p
	}
	j := s.load(members)
	c.out = appendProfiles(c.out, members, &j)
	s.sendProfiles(ctx, c)
	return nil
}

func (s *DataServer) profile(ctx *fasthttp.RequestCtx, c *call) *problem {
	j := s.load(c.member[:])
	switch {
	case j.profiles[0] != nil:
	case j.missing > 0:
		return &problem{code: CodeNoProfiles}
	default:
		return &problem{code: CodeUnknownProfile}
	}
	c.out = wire.AppendString(append(c.out, `{"member":`...), c.member[0])
	c.out = append(appendProfile(c.out, &j, 0), '}')
	s.sendProfiles(ctx, c)
	return nil
}
