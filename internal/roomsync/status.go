package roomsync

import "time"

// Status is what operators see of the sources.
type Status struct {
	File    FileStatus    `json:"file"`
	Dynamic DynamicStatus `json:"dynamic"`
}

// FileStatus is the rooms file's.
type FileStatus struct {
	File     string    `json:"file"`
	LoadedAt time.Time `json:"loaded_at"`       // when the file in force was read
	Rooms    int       `json:"rooms"`           // rooms in force
	Error    string    `json:"error,omitempty"` // why the newest file is not in force
	// Resolved says that Redis has said once which boards run in the rooms, and
	// which rooms are set at run time, or was waited for long enough.
	Resolved bool `json:"resolved"`
}

// DynamicStatus is that of the rooms set at run time.
type DynamicStatus struct {
	Key        string     `json:"key"`
	ReadAt     time.Time  `json:"read_at"`
	Entries    int        `json:"entries"`
	BadEntries int        `json:"bad_entries"`
	Bad        []BadEntry `json:"bad,omitempty"` // the first few
	Error      string     `json:"error,omitempty"`
}

// Status returns what is known of the sources.
func (f *Follower) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

// Resolved reports whether the boards of all rooms are known.
func (f *Follower) Resolved() bool { return f.Status().File.Resolved }

func (f *Follower) note(change func(*Status)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.status)
}
