// Package rooms defines the rooms file, in which operators set which boards are hot, super-hot or blocked, and the
// tiers that follow from it. It does no I/O. docs/ROOMS.md describes the file for operators.
//
// The path of a setting, in order: [Parse] reads the file from YAML nodes (file.go, yaml.go); [ParseEntry] reads one
// room or rule that was set at run time (entry.go); [File.Resolve] turns both into [Tiers], which answer with the mode
// of a board (tiers.go), and whether an operator has Redis answer it, also where a copy is kept (bypass.go). A class is
// read by class.go and checked with the others by classes.go, and its mode becomes that of its boards in class_mode.go,
// as long as they run or linger (linger.go).
//
// # Glossary
//
//	rule       a mode for the boards whose id matches a pattern
//	mode       none, hot, super-hot or blocked
//	entry      one room or rule, set at run time
//
// Start reading at [Parse].
package rooms
