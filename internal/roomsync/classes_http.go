package roomsync

import (
	"context"
	"errors"
	"io"
	"net/http"

	"rankcache/rooms"
)

// ClassRow is one class in force as GET /classes shows it.
type ClassRow struct {
	Name   string `json:"name"`
	Board  string `json:"board"`
	Period string `json:"period"`
	TZ     string `json:"tz"`
	Mode   string `json:"mode"`
	Source string `json:"source"` // file or dynamic
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
		row := ClassRow{c.Name(), c.Template(), c.Calendar().String(), c.Calendar().Zone(), c.Mode.String(), sourceFile}
		if c.SetAtRunTime() {
			row.Source = sourceDynamic
		}
		list.Classes = append(list.Classes, row)
	}
	writeJSON(w, list)
}

// PutClasses sets the classes of a document on all that follow the hash and responds as
// GetClasses does.
func (h *Handler) PutClasses(w http.ResponseWriter, r *http.Request) {
	document, err := io.ReadAll(http.MaxBytesReader(w, r.Body, rooms.MaxMoreClasses))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		h.problem(w, CodeTooLarge, "", "want at most 64 KiB")
		return
	}
	if err != nil { // half a document may be a good one
		h.problem(w, CodeBadArgument, "body", "the body ended early")
		return
	}
	var refused refusedClasses
	switch err := h.follower.SetClasses(context.WithoutCancel(r.Context()), document); {
	case errors.As(err, &refused):
		h.problem(w, CodeBadArgument, "body", err.Error())
	case err != nil:
		h.unavailable(w, err)
	default:
		h.GetClasses(w, r)
	}
}

// DeleteClasses takes away the classes that were set at run time.
func (h *Handler) DeleteClasses(w http.ResponseWriter, r *http.Request) {
	switch found, err := h.follower.UnsetClasses(context.WithoutCancel(r.Context())); {
	case err != nil:
		h.unavailable(w, err)
	case !found:
		h.problem(w, CodeUnknownClass, "", "no classes are set at run time")
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}
