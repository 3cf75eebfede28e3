package roomsync

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"rankcache/rooms"
)

// Codes that a [ProblemWriter] is called with.
const (
	CodeBadArgument = "bad_argument"
	CodeTooLarge    = "body_too_large"
	CodeUnknownRoom = "unknown_room"
	CodeUnavailable = "origin_unavailable"
)

// ProblemWriter answers an error in the form of the listener. argument is empty
// where none is to blame.
type ProblemWriter func(w http.ResponseWriter, code, argument, detail string)

// Handler answers GET, POST and DELETE of /rooms on the admin port. Who may POST
// and DELETE is the caller's to check.
type Handler struct {
	follower *Follower
	problem  ProblemWriter
}

// NewHandler returns the handler of what f follows.
func NewHandler(f *Follower, problem ProblemWriter) *Handler { return &Handler{f, problem} }

// listBody answers GET /rooms.
type listBody struct {
	Rooms  []RoomRow `json:"rooms"`
	Boards []RuleRow `json:"boards"`
	Status
}

// Get lists what is said of rooms and boards, and where.
func (h *Handler) Get(w http.ResponseWriter, _ *http.Request) {
	l := h.follower.list.Load()
	body := listBody{Rooms: append([]RoomRow{}, l.rooms...), Boards: append([]RuleRow{}, l.rules...), Status: h.follower.Status()}
	writeJSON(w, body)
}

// Post sets one room or board on all sidecars, and answers it as Get shows it.
func (h *Handler) Post(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, rooms.MaxEntry))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		h.problem(w, CodeTooLarge, "", "want at most 64 KiB")
		return
	}
	entry, err := rooms.ParseEntry(data)
	if err != nil {
		h.problem(w, CodeBadArgument, "body", err.Error())
		return
	}
	// A caller that leaves does not undo it: half of the sidecars may have heard.
	switch err := h.follower.Set(context.WithoutCancel(r.Context()), entry); {
	case errors.Is(err, ErrFull):
		h.problem(w, CodeBadArgument, "body", err.Error())
	case err != nil:
		h.unavailable(w, err)
	default:
		writeJSON(w, h.follower.list.Load().find(entry))
	}
}

// Delete takes back what was set for ?uid= or ?match=.
func (h *Handler) Delete(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	field, err := fieldOf(q.Get("uid"), q.Get("match"))
	if err != nil {
		h.problem(w, CodeBadArgument, "uid", err.Error())
		return
	}
	switch there, err := h.follower.Unset(context.WithoutCancel(r.Context()), field); {
	case err != nil:
		h.unavailable(w, err)
	case !there:
		h.problem(w, CodeUnknownRoom, "", "nothing is set at run time for "+field)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// unavailable answers that Redis failed. Its words stay in the log.
func (h *Handler) unavailable(w http.ResponseWriter, err error) {
	h.follower.cfg.Log.Error("a room could not be set at run time", "err", err)
	h.problem(w, CodeUnavailable, "", "Redis did not take the change; other sidecars may or may not hear of it: try again")
}

// find returns the row of an entry that was set at run time.
func (l *list) find(e rooms.Entry) any {
	for _, row := range l.rules {
		if e.Rule != nil && row.Match == e.Rule.Match && row.Source == sourceDynamic {
			return row
		}
	}
	for _, row := range l.rooms {
		if e.Room != nil && row.UID == e.Room.UID && row.Source == sourceDynamic {
			return row
		}
	}
	return e // taken back meanwhile
}

func writeJSON(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil { // strings and numbers only: can't be
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(body, '\n')) // a caller that left is none of our business
}
