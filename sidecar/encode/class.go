package encode

import (
	"encoding/json"
	"time"

	"rankcache/class"
	"rankcache/rooms"
)

// Period is a period of a class in JSON.
type Period struct {
	Tag   string    `json:"tag"`
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	State string    `json:"state"`
}

// PeriodOf returns nil, which is null, for what a class without periods has.
func PeriodOf(p class.Period, state rooms.PeriodState) *Period {
	if p.Tag == "" {
		return nil
	}
	return &Period{p.Tag, p.Start, p.End, state.String()}
}

// ClassTail returns the fields of a class, its period and the beginning of the life; the life and `"}` follow.
func ClassTail(name string, p class.Period, state rooms.PeriodState) []byte {
	tail, err := json.Marshal(struct {
		Class  string  `json:"class"`
		Period *Period `json:"period"`
	}{name, PeriodOf(p, state)})
	if err != nil { // the year 10000: calendars don't reach it
		panic(err)
	}
	tail[0] = ','
	return append(tail[:len(tail)-1], `,"locked":"`...)
}
