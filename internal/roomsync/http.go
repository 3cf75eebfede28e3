package roomsync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/rooms"
)

// Problem codes passed to a [ProblemWriter].
const (
	CodeBadArgument = "bad_argument"
	CodeTooLarge    = "body_too_large"
	CodeUnknownRoom = "unknown_room"
	CodeUnavailable = "origin_unavailable"

	CodeUnknownClass = "unknown_class"
)

// ProblemWriter writes an error response in the listener's format. argument names the wrong argument, if there is one.
type ProblemWriter func(w http.ResponseWriter, code, argument, detail string)

// Handler serves /rooms, /rooms/bypass and /classes on the admin port. The caller authorizes all but GET.
type Handler struct {
	follower *Follower
	problem  ProblemWriter
}

// NewHandler returns a handler that shows and changes the rooms of f.
func NewHandler(f *Follower, problem ProblemWriter) *Handler { return &Handler{f, problem} }

type listBody struct {
	Rooms    []RoomRow      `json:"rooms"`
	Boards   []RuleRow      `json:"boards"`
	Bypasses []rooms.Bypass `json:"bypasses"` // in force
	Status
}

// Get lists all configured rooms and boards with their source.
func (h *Handler) Get(w http.ResponseWriter, _ *http.Request) {
	m := h.follower.merged.Load()
	body := listBody{Rooms: append([]RoomRow{}, m.rooms...), Boards: append([]RuleRow{}, m.rules...),
		Bypasses: append([]rooms.Bypass{}, m.bypasses...), Status: h.follower.Status()}
	httpserve.WriteJSON(w, http.StatusOK, body)
}

// Post sets one room or board on all sidecars and responds with its row of Get.
func (h *Handler) Post(w http.ResponseWriter, r *http.Request) {
	data, ok := h.body(w, r, rooms.MaxEntry)
	if !ok {
		return
	}
	entry, err := rooms.ParseEntry(data)
	if err != nil {
		h.problem(w, CodeBadArgument, "body", err.Error())
		return
	}
	// The change continues if the client disconnects: other sidecars may have it.
	err = h.follower.Set(context.WithoutCancel(r.Context()), entry)
	h.changed(w, err, func() { httpserve.WriteJSON(w, http.StatusOK, h.follower.merged.Load().find(entry)) })
}

// Delete removes the entry that was set at run time for ?uid= or ?match=.
func (h *Handler) Delete(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	field, err := fieldOf(q.Get("uid"), q.Get("match"))
	if err != nil {
		h.problem(w, CodeBadArgument, "uid", err.Error())
		return
	}
	found, err := h.follower.Unset(context.WithoutCancel(r.Context()), field)
	h.removed(w, found, err, CodeUnknownRoom, "nothing is set at run time for "+field)
}

// body reads up to limit bytes. It responds and returns false otherwise: half a document may be a good one.
func (h *Handler) body(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, bool) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		h.problem(w, CodeTooLarge, "", fmt.Sprintf("want at most %d KiB", limit>>10))
	case errors.Is(err, os.ErrDeadlineExceeded):
		httpserve.BodyProblem(err).Write(w)
	case err != nil:
		h.problem(w, CodeBadArgument, "body", "the body ended early")
	}
	return data, err == nil
}

// changed responds to a change that has ended with err, and with respond if there is none.
func (h *Handler) changed(w http.ResponseWriter, err error, respond func()) {
	var no refused
	switch {
	case errors.As(err, &no):
		h.problem(w, CodeBadArgument, "body", err.Error())
	case err != nil:
		h.unavailable(w, err)
	default:
		respond()
	}
}

func (h *Handler) removed(w http.ResponseWriter, found bool, err error, code, detail string) {
	switch {
	case err != nil:
		h.unavailable(w, err)
	case !found:
		h.problem(w, code, "", detail)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// unavailable responds that Redis failed. The error itself goes only to the log.
func (h *Handler) unavailable(w http.ResponseWriter, err error) {
	h.follower.cfg.Log.Error("a change at run time failed", "err", err)
	h.problem(w, CodeUnavailable, "", "Redis did not confirm the change; other sidecars may or may not get it: try again")
}

// find returns the row of an entry that was set at run time.
func (m *merged) find(e rooms.Entry) any {
	for _, row := range m.rules {
		if e.Rule != nil && row.Match == e.Rule.Match && row.Source == sourceDynamic {
			return row
		}
	}
	for _, row := range m.rooms {
		if e.Room != nil && row.UID == e.Room.UID && row.Source == sourceDynamic {
			return row
		}
	}
	return e // removed meanwhile
}

// PostBypass bypasses a board, or all, and responds with the bypass in force.
func (h *Handler) PostBypass(w http.ResponseWriter, r *http.Request) {
	data, ok := h.body(w, r, rooms.MaxBypassJSON)
	if !ok {
		return
	}
	b, err := rooms.ParseBypassRequest(data, time.Now().UTC().Truncate(time.Millisecond))
	if err != nil {
		h.problem(w, CodeBadArgument, "body", err.Error())
		return
	}
	h.changed(w, h.follower.SetBypass(context.WithoutCancel(r.Context()), b), func() { httpserve.WriteJSON(w, http.StatusOK, b) })
}

// DeleteBypass ends the bypass of ?board=, or with ?all=true every bypass.
func (h *Handler) DeleteBypass(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	board, all := rankcache.BoardID(q.Get("board")), q.Get("all") == "true"
	if err := board.Check(); all == (board != "") || !all && err != nil {
		h.problem(w, CodeBadArgument, "board", "want either a board's id or all=true")
		return
	}
	found, err := h.follower.EndBypass(context.WithoutCancel(r.Context()), board, all)
	h.removed(w, found, err, CodeUnknownRoom, "nothing of that name is bypassed; GET /rooms lists what is")
}

// ClassRow is one class in force as GET /classes shows it.
type ClassRow struct {
	Name    string `json:"name"`
	Board   string `json:"board"`
	Period  string `json:"period"`
	TZ      string `json:"tz"`
	Mode    string `json:"mode"`
	Durable bool   `json:"durable,omitempty"` // also set where it follows from other settings
	Source  string `json:"source"`            // file or dynamic
}

// ClassList is the response of GET /classes.
type ClassList struct {
	Classes  []ClassRow `json:"classes"`
	Document string     `json:"document"` // as it was set at run time; "": none
}

// GetClasses lists the classes in force, and what is set at run time.
func (h *Handler) GetClasses(w http.ResponseWriter, _ *http.Request) {
	m := h.follower.merged.Load()
	list := ClassList{Classes: []ClassRow{}, Document: m.document}
	for _, c := range m.file.Classes {
		row := ClassRow{c.Name(), c.Template(), c.Calendar().String(), c.Calendar().Zone(), c.Mode.String(), c.Durable, sourceFile}
		if c.SetAtRunTime() {
			row.Source = sourceDynamic
		}
		list.Classes = append(list.Classes, row)
	}
	httpserve.WriteJSON(w, http.StatusOK, list)
}

// PutClasses sets the classes of a document on all that follow the hash and responds as GetClasses does.
func (h *Handler) PutClasses(w http.ResponseWriter, r *http.Request) {
	if document, ok := h.body(w, r, rooms.MaxMoreClasses); ok {
		h.changed(w, h.follower.SetClasses(context.WithoutCancel(r.Context()), document), func() { h.GetClasses(w, r) })
	}
}

// DeleteClasses takes away the classes that were set at run time.
func (h *Handler) DeleteClasses(w http.ResponseWriter, r *http.Request) {
	found, err := h.follower.UnsetClasses(context.WithoutCancel(r.Context()))
	h.removed(w, found, err, CodeUnknownClass, "no classes are set at run time")
}
