package admission

// What a board of n members is reckoned at, in bytes. Measured are 75 to 97 a
// member above its id from 57,000 members on, live updates included and whether the
// hash table has just grown or is about to, and under 100 KiB for all that a board of
// 1,000 takes (BenchmarkMemory of localboard, TestEstimateCoversWhatBoardsTake of
// cmd/rankcache). What is reckoned above that is for members that come, for removed
// ones that are not forgotten yet, and for what readers still hold of the
// publication before.
const (
	perBoard  = 128 << 10
	perMember = 100
)

// Estimate returns how many bytes of memory a board of that size needs.
func Estimate(s Size) int64 {
	return perBoard + int64(s.Members)*int64(perMember+s.IDBytes)
}

// charge returns what an admitted board counts for: what it was admitted with
// while it is filled, what it has become once it is open, and never less than it
// holds.
func charge(v verdict, held Held) int64 {
	reckoned := v.bytes
	if held.Open {
		size := held.Size
		size.IDBytes = max(size.IDBytes, v.size.IDBytes)
		reckoned = Estimate(size)
	}
	return max(reckoned, held.Bytes)
}
