// Package docs has the pages that the program itself shows.
package docs

import _ "embed" // for the page below

// Runbooks is RUNBOOKS.md: what to do about each alert.
//
//go:embed RUNBOOKS.md
var Runbooks string
