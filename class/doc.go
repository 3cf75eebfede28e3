// Package class makes and takes apart the ids of the boards of a class: the kind of board of which each period and each
// combination of dimensions has its own. It does no I/O, except that [NewCalendar] loads a time zone. docs/CLASSES.md
// describes classes for operators.
//
// From a command's class, dimensions and time to its board, in order: a [Calendar] finds the period (calendar.go),
// whose days begin where the zone's do (day.go) and whose name is its tag (tag.go); a template puts dimensions and tag
// into an id (template.go); seasons are periods of which each is written down (season.go). [Class.At] returns the
// board, [Class.Parse] the same from an id (class.go). [Conflict] tells which classes can make one id (conflict.go).
//
// Start reading at [New].
package class
