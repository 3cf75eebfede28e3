package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"rankcache"
	"rankcache/class"
)

// A split board has no meta of its own: each shard is added up that has one in Redis or that the sidecar follows.

// runWhole verifies the board or, if Redis has no meta of it but of shards of it, all of these.
func (v *verifier) runWhole(ctx context.Context) (*verifyReport, error) {
	whole := v.board
	_, _, isShard := class.CutShard(whole)
	if _, found, err := v.origin.Meta(ctx, whole); found || isShard || err != nil {
		return v.run(ctx)
	}
	n, err := v.shards(ctx)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return v.run(ctx)
	}
	report := &verifyReport{Board: whole}
	for _, v.board = range class.ShardIDs(whole, n) {
		part, err := v.runShard(ctx)
		if err != nil {
			return nil, err
		}
		report.addShard(part)
	}
	report.judgeShards()
	return report, nil
}

// shards returns how many shards of the board are known, 0 if none is.
func (v *verifier) shards(ctx context.Context) (n int, err error) {
	for shard, id := range class.ShardIDs(v.board, class.MaxShards) {
		_, found, err := v.origin.Meta(ctx, id)
		if err != nil {
			return 0, err
		}
		if found {
			n = shard + 1
		}
	}
	if v.sidecar == nil {
		return n, nil
	}
	var status struct{ Shards []boardProgress }
	if body, err := v.sidecar.Ask(ctx, http.MethodGet, "/status/"+url.PathEscape(string(v.board)), nil); err == nil {
		_ = json.Unmarshal(body, &status) // each shard tells what is wrong with the sidecar
	}
	for _, b := range status.Shards {
		if whole, shard, ok := class.CutShard(b.Board); ok && whole == v.board {
			n = max(n, shard+1)
		}
	}
	return n, nil
}

// runShard verifies a shard. One without members has no meta, and nothing is wrong with it.
func (v *verifier) runShard(ctx context.Context) (*verifyReport, error) {
	report, err := v.run(ctx)
	if err != nil || report.Redis.Meta != nil {
		return report, err
	}
	a := rankcache.One(ctx, v.origin, rankcache.Query{Board: v.board, Limit: 1})
	if a.Err == nil && a.Members == 0 {
		report.Wrong, report.Reason = wrongNone, "it has no member yet, or was deleted with its meta: nobody can tell"
	}
	return report, a.Err
}

func (r *verifyReport) addShard(part *verifyReport) {
	r.Shards = append(r.Shards, part)
	r.Redis.Members += part.Redis.Members
	r.Redis.Walks += part.Redis.Walks
	r.Redis.TookMs += part.Redis.TookMs
	r.Redis.Changed = r.Redis.Changed || part.Redis.Changed
}

// judgeShards sets which side is wrong: that of the shards that are; unknown only if none is.
func (r *verifyReport) judgeShards() {
	sides := make(map[string]int)
	for _, part := range r.Shards {
		sides[part.Wrong]++
	}
	switch {
	case sides[wrongBoth] > 0 || sides[wrongRedis] > 0 && sides[wrongCopy] > 0:
		r.Wrong = wrongBoth
	case sides[wrongRedis] > 0:
		r.Wrong = wrongRedis
	case sides[wrongCopy] > 0:
		r.Wrong = wrongCopy
	case sides[wrongUnknown] > 0:
		r.Wrong = wrongUnknown
	default:
		r.Wrong = wrongNone
	}
	r.Reason = fmt.Sprintf("%d shards: nothing is wrong with %d", len(r.Shards), sides[wrongNone])
	for _, part := range r.Shards {
		if part.Wrong != wrongNone && (part.Wrong != wrongUnknown || r.Wrong == wrongUnknown) {
			r.Reason += fmt.Sprintf("; first %s: %s", part.Board, part.Reason)
			return
		}
	}
}
