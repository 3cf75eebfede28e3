// Package serve is rankcache serve, the sidecar: its settings and their wiring. sidecar_build.go joins
// the peers, which don't import each other, by the adapters of wire.go; sidecar.go runs them; write.go adds the writer of
// --write.
//
// Words: a part is a long-lived piece of the process, run in one errgroup.
package serve
