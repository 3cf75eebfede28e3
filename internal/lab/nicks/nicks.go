// Package nicks is a profile service for the demo and the tests: it makes up nicks and
// avatars.
package nicks

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// A separate HTTP server with nicks and avatars that
// it makes up from the member's id. With faults it is slow for one call in four
// and fails one in five.
const (
	delay      = 2 * time.Millisecond
	hang       = 400 * time.Millisecond
	maxRequest = 64 << 10
)

var (
	nickFirst  = []string{"Silent", "Lucky", "Neon", "Golden", "Midnight", "Cosmic", "Happy", "Velvet", "Turbo", "Paper", "Electric", "Little"}
	nickSecond = []string{"Fox", "Comet", "Tiger", "Dumpling", "Violin", "Panda", "Rocket", "Lantern", "Whale", "Sparrow", "Cactus", "Moon"}
)

// Profile is what the service knows of a member.
type Profile struct {
	Nick   string `json:"nick"`
	Avatar string `json:"avatar"`
	Level  uint32 `json:"level"`
}

// Of returns the profile of a member, which is always the same.
func Of(member string) Profile {
	h := fnv.New32a()
	io.WriteString(h, member)
	n := h.Sum32()
	return Profile{
		Nick:   fmt.Sprintf("%s %s %d", nickFirst[n%12], nickSecond[n/12%12], n/144%90+10),
		Avatar: fmt.Sprintf("https://cdn.example/avatar/%08x.webp", n),
		Level:  n%60 + 1,
	}
}

// Serve answers POST {"members":[…]} on a free loopback port until
// the server is closed.
func Serve(faults bool) (*http.Server, string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("profile service: %w", err)
	}
	server := &http.Server{Handler: handler(faults), ReadHeaderTimeout: time.Second}
	go server.Serve(ln) // ends with ErrServerClosed at Close
	return server, "http://" + ln.Addr().String() + "/profiles", nil
}

func handler(faults bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var ask struct{ Members []string }
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&ask); err != nil {
			http.Error(w, "want {\"members\":[…]}", http.StatusBadRequest)
			return
		}
		time.Sleep(delay)
		if faults && rand.IntN(4) == 0 {
			time.Sleep(hang)
		}
		if faults && rand.IntN(5) == 0 {
			http.Error(w, "the demo's profile service fails on request", http.StatusInternalServerError)
			return
		}
		answer := map[string]Profile{}
		for _, member := range ask.Members {
			answer[member] = Of(member)
		}
		json.NewEncoder(w).Encode(map[string]any{"profiles": answer})
	}
}
