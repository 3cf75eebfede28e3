package roomsync

import (
	"context"
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
	// Durable is also set where it follows from other settings.
	Durable bool   `json:"durable,omitempty"`
	Source  string `json:"source"` // file or dynamic
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
	writeJSON(w, list)
}

// PutClasses sets the classes of a document on all that follow the hash and responds as
// GetClasses does.
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
