package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/tick"
	"rankcache/origin"
	"rankcache/wire"
)

const (
	verifyTries   = 5 // how often a board that changes is read, and a copy is asked that is at another seq
	verifyPause   = 100 * time.Millisecond
	progressEvery = time.Second // the time between two lines of progress
)

// verifier compares one board's members with its sum in Redis and with a copy.
type verifier struct {
	board    rankcache.BoardID
	origin   *origin.Origin
	sidecar  *cli.AdminClient // nil: none
	progress io.Writer

	sidecarErr error     // why it did not answer
	logged     time.Time // when progress was last written
}

func (v *verifier) run(ctx context.Context) (*verifyReport, error) {
	begin := time.Now()
	report := &verifyReport{Board: v.board}
	meta, found, err := v.origin.Meta(ctx, v.board)
	if err != nil {
		return nil, err
	}
	if !found {
		report.Wrong, report.Reason = wrongUnknown, notWritten+"; its first change through a writer adds it up"
		return report, nil
	}
	report.Redis = redisSide{State: meta.State.String(), Meta: inWords(&meta)}
	read, err := v.addUp(ctx, &report.Redis)
	if err != nil {
		return nil, err
	}
	report.Redis.TookMs = time.Since(begin).Milliseconds()
	if err := v.compareCopy(ctx, report); err != nil {
		return nil, err
	}
	report.judge(read)
	return report, nil
}

// whole is the members of a board at one state.
type whole struct {
	rankcache.State // of the meta
	sum             uint64
	members         int
}

// own returns the state with the members' own sum.
func (w *whole) own() rankcache.State {
	return rankcache.State{Run: w.Run, Seq: w.Seq, Sum: w.sum, HasSum: true}
}

// addUp reads the board until it does not change meanwhile. It returns nil if it did each time.
func (v *verifier) addUp(ctx context.Context, side *redisSide) (*whole, error) {
	for side.Walks < verifyTries {
		side.Walks++
		before, after, sum, members, err := v.walk(ctx)
		if err != nil && !errors.Is(err, origin.ErrOtherRun) {
			return nil, err
		}
		side.State, side.Members, side.AddedUp = after.State.String(), members, ""
		if side.Changed = before.State != after.State || before.Members != after.Members; !side.Changed {
			w := &whole{after.State, sum, members}
			side.AddedUp = w.own().String()
			return w, nil
		}
		if !tick.Sleep(ctx, verifyPause) {
			return nil, ctx.Err()
		}
	}
	return nil, nil
}

// walk adds up the members that it sees, each once.
func (v *verifier) walk(ctx context.Context) (before, after rankcache.Stamp, sum uint64, members int, err error) {
	entries, before, err := v.origin.All(ctx, v.board)
	if err == nil {
		for _, e := range entries {
			sum += wire.Hash(e.Member, e.Score)
		}
		return before, before, sum & wire.SumMask, len(entries), nil
	}
	if before.Members <= origin.MaxAll {
		return before, before, 0, 0, err
	}
	seen := make(map[string]float64, before.Members)
	before, after, err = v.origin.Scan(ctx, v.board, func(batch []rankcache.Entry) error {
		for _, e := range batch {
			seen[e.Member] = e.Score
		}
		v.logProgress(len(seen), before.Members)
		return ctx.Err()
	})
	for member, score := range seen {
		sum += wire.Hash(member, score)
	}
	return before, after, sum & wire.SumMask, len(seen), err
}

func (v *verifier) logProgress(done, of int) {
	if time.Since(v.logged) >= progressEvery {
		v.logged = time.Now()
		fmt.Fprintf(v.progress, "%d of %d members are read\n", done, of)
	}
}

// compareCopy asks the sidecar for its copy until it is at Redis's seq, or was proved at a seq from here on.
func (v *verifier) compareCopy(ctx context.Context, report *verifyReport) error {
	for try := 0; v.sidecar != nil && try < verifyTries; try++ {
		report.Copy, report.CopyMissing = v.askCopy(ctx)
		if report.Copy == nil {
			return nil
		}
		meta, _, err := v.origin.Meta(ctx, v.board)
		if err != nil {
			return err
		}
		if report.Copy.Redis = meta.State.String(); report.copyAgrees() != nil {
			return nil
		}
		if !tick.Sleep(ctx, verifyPause) {
			return ctx.Err()
		}
	}
	return nil
}

// askCopy returns the sidecar's copy of the board, or why there is none.
func (v *verifier) askCopy(ctx context.Context) (*copySide, string) {
	body, err := v.sidecar.Ask(ctx, http.MethodGet, "/status/"+url.PathEscape(string(v.board)), nil)
	var status struct {
		Mode, State string
		Proved      string `json:"proved_state"`
		Replay      *boardProgress
	}
	if err == nil {
		err = json.Unmarshal(body, &status)
	}
	switch v.sidecarErr = err; {
	case err != nil:
		return nil, fmt.Sprintf("no sidecar's copy was compared: %v", err)
	case status.Replay == nil:
		return nil, "the sidecar keeps no copy of it: it is not super-hot there"
	case status.Replay.State != rankcache.StateOpen || status.State == "":
		return nil, "the sidecar's copy is not read: " + status.Replay.String()
	}
	return &copySide{Sidecar: v.sidecar.Admin, State: status.State, Proved: status.Proved}, ""
}

// copyAgrees returns whether copy and meta have the same sum; nil if at different seqs, or a sum is unknown.
func (r *verifyReport) copyAgrees() *bool {
	here, err := rankcache.ParseState(r.Copy.State)
	there, err2 := rankcache.ParseState(r.Copy.Redis)
	proved, err3 := rankcache.ParseState(r.Copy.Proved)
	began, err4 := rankcache.ParseState(r.Redis.State)
	switch {
	case err == nil && err2 == nil && here.Run == there.Run && here.Seq == there.Seq && here.HasSum && there.HasSum:
		return new(here.Sum == there.Sum)
	case err3 == nil && err4 == nil && proved.Run == began.Run && proved.Seq >= began.Seq && proved.HasSum:
		return new(true)
	}
	return nil
}

// judge sets which side is wrong, and the reason. read is nil if the board changed during each walk.
func (r *verifyReport) judge(read *whole) {
	var agrees *bool
	if r.Copy != nil {
		agrees = r.copyAgrees()
	}
	switch {
	case read == nil:
		r.Wrong, r.Reason = wrongUnknown, fmt.Sprintf("it changed during each of %d walks: try again when it changes less", r.Redis.Walks)
	case !read.HasSum:
		r.Wrong, r.Reason = wrongUnknown, "Redis has no sum of it now: a writer is adding it up, or does so at the next change"
	case read.Sum != read.sum:
		r.judgeRedis(read)
	case r.Copy == nil:
		r.Wrong, r.Reason = wrongNone, "Redis's members are those of its sum; no copy was compared"
	case agrees == nil:
		r.Wrong, r.Reason = wrongUnknown, "Redis's members are those of its sum, but the copy was never at the same seq: try again when the board changes less"
	case *agrees:
		r.Wrong, r.Reason = wrongNone, "Redis's members are those of its sum, and the copy's too"
	default:
		r.Wrong, r.Reason = wrongCopy, "Redis's members are those of its sum, the copy's are not: the sidecar closes and fills the board by itself within seconds; report it with this output"
	}
}

// judgeRedis judges a board in Redis whose members are not those of its sum.
func (r *verifyReport) judgeRedis(read *whole) {
	r.Wrong, r.Reason = wrongRedis, "its members are not those of its sum: they were changed past the writer; a writer adds them up again when a sidecar finds it"
	if r.Copy == nil {
		return
	}
	here, err := rankcache.ParseState(r.Copy.State)
	switch {
	case err != nil || here.Run != read.Run || here.Seq != read.Seq || !here.HasSum:
		r.Reason += "; the copy is at another seq and was not compared"
	case here.Sum == read.sum:
		r.Reason += "; the copy has the members that Redis has"
	case here.Sum == read.Sum:
		r.Reason += "; the copy has the members of the sum, which Redis had before"
	default:
		r.Wrong = wrongBoth
		r.Reason += "; the copy has neither these members nor those of the sum"
	}
}
