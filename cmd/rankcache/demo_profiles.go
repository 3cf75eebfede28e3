package main

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

// The demo's profile service: a separate HTTP server with nicks and avatars that
// it makes up from the member's id. With faults it is slow for one call in four
// and fails one in five.
const (
	demoProfileDelay  = 2 * time.Millisecond
	demoProfileHang   = 400 * time.Millisecond
	demoProfileMaxLen = 64 << 10
)

var (
	nickFirst  = []string{"Silent", "Lucky", "Neon", "Golden", "Midnight", "Cosmic", "Happy", "Velvet", "Turbo", "Paper", "Electric", "Little"}
	nickSecond = []string{"Fox", "Comet", "Tiger", "Dumpling", "Violin", "Panda", "Rocket", "Lantern", "Whale", "Sparrow", "Cactus", "Moon"}
)

type demoProfile struct {
	Nick   string `json:"nick"`
	Avatar string `json:"avatar"`
	Level  uint32 `json:"level"`
}

func profileOf(member string) demoProfile {
	h := fnv.New32a()
	io.WriteString(h, member)
	n := h.Sum32()
	return demoProfile{
		Nick:   fmt.Sprintf("%s %s %d", nickFirst[n%12], nickSecond[n/12%12], n/144%90+10),
		Avatar: fmt.Sprintf("https://cdn.example/avatar/%08x.webp", n),
		Level:  n%60 + 1,
	}
}

// serveDemoProfiles answers POST {"members":[…]} on a free loopback port until
// the server is closed.
func serveDemoProfiles(faults bool) (*http.Server, string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("profile service: %w", err)
	}
	server := &http.Server{Handler: demoProfileHandler(faults), ReadHeaderTimeout: time.Second}
	go server.Serve(ln) // ends with ErrServerClosed at Close
	return server, "http://" + ln.Addr().String() + "/profiles", nil
}

func demoProfileHandler(faults bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var ask struct{ Members []string }
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, demoProfileMaxLen)).Decode(&ask); err != nil {
			http.Error(w, "want {\"members\":[…]}", http.StatusBadRequest)
			return
		}
		time.Sleep(demoProfileDelay)
		if faults && rand.IntN(4) == 0 {
			time.Sleep(demoProfileHang)
		}
		if faults && rand.IntN(5) == 0 {
			http.Error(w, "the demo's profile service fails on request", http.StatusInternalServerError)
			return
		}
		answer := map[string]demoProfile{}
		for _, member := range ask.Members {
			answer[member] = profileOf(member)
		}
		json.NewEncoder(w).Encode(map[string]any{"profiles": answer})
	}
}
