// Package admission (no public API) decides which super-hot boards are kept in memory, within a budget. A board that
// does not fit is refused with the reason and answered like any other board: one board read from Redis is better than a
// process that is killed for its memory. The entry function is [Admission.Want].
//
// The path of a board, in order: [Admission.Want] names it; a decision (admission.go) reads the sizes of the boards
// that are not admitted yet, estimates their memory, and admits them in the order of naming as far as the budget allows
// (decide.go); Config.Follow gets the admitted boards; [Admission.Fill] has each filled when there is memory for that,
// too (fills.go). Every [DefaultEvery] the refused boards are decided again. An admitted board is never given up for
// another, unless it lingers; but if the admitted ones outgrow the budget, the last named are given up (admission.go
// shows it).
//
// A board of unknown size, because Redis does not answer, is not admitted: it could not be opened without Redis either,
// and filling a hundred boards of unknown size may exceed the memory limit.
//
// # Words
//
//	wanted    named by the caller; admitted: kept in memory; refused: over budget
//	size      number of members and mean length of their ids
//	usage     the memory that a board takes now
//	estimate  the memory that a board of a size holds
//	fill      the memory that it takes beside that while it is filled, or filled again
//	lingers   its period has ended: it is let go for any other
//	given up  not admitted any more, because the boards have outgrown the budget
//	budget    the memory for all boards, in bytes; 0: no limit
package admission
