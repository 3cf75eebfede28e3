// Package run has the other long-running commands: write, ledger, reconcile, poll and controller. Each
// has a file of its own, with its settings, the wiring and the loop.
package run
