//go:build race

package measure

const raceOn = true
