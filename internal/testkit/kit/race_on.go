//go:build race

package kit

// Race is true under the race detector, which takes memory and time of its own.
const Race = true
