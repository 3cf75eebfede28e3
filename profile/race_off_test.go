//go:build !race

package profile

const raceOn = false
