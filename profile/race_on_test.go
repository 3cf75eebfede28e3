//go:build race

package profile

const raceOn = true
