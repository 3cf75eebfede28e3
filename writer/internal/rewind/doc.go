// Package rewind decides from where a writer reads the log of commands, so that no failover of Redis loses a command of
// a durable class or applies one twice. It has no I/O, no goroutine and no clock: a writer tells a [Machine] what has
// happened, and does what it answers.
//
// # How it works
//
// A command of a durable class is in the log before it is applied, so a change that Redis has lost is still there, in
// order and with its order id. Each master of Redis keeps, beside its boards, how far it is in each partition of the
// log: its positions. They are replicated with the boards and lost with them, so a position is a lower bound of what
// its master has, whatever has become of the master. After each change of a master the writer reads the positions and
// goes on from the least of them: it rewinds. What was not lost is known by its order id.
//
// A position is only worth something if no writer writes it into another history than the one in which it saw the
// answers. Two names tell histories apart, and the scripts that write compare them: the era of a server, another one
// after each promotion and restart, and the life of its hash of positions, another one after its keys were deleted.
//
// # What may not be forgotten
//
//   - The eras are read before the positions. The other way round a server could be promoted between,
//     and be taken to have what another one had.
//   - Every script that changes a board or a position compares the era itself. A script that is merely
//     named after an era is still known to a server that was a replica meanwhile.
//   - A position tells only what is published, too. The committed offset is ahead of it after a
//     rewind has begun, so nobody would publish again what a writer has applied and died with.
//   - What is published is known of one era and one life of the hash: after its keys were deleted all is applied
//     and published anew.
//   - A server that comes back is healed only if its position is at or behind the committed offset: it is of before
//     others went on elsewhere.
//   - A board's history is the highest run of the servers that writers named last, not the highest of all: an address
//     may lead back to an earlier server. A repeat whose run is not the board's any more tells nothing against it.
//   - The life of the hash is looked at once a second. Nothing else tells that keys were deleted while
//     no command comes.
//   - Commands that commute are applied at once when they are posted. The others are applied by the
//     reader of their partition alone, in the log's order. Then Redis is what the log up to some offset
//     makes of it, also after a loss and while two servers are taken for one master.
//   - A board with a guard keeps the offsets that it has seen: a command among them without a record of
//     its order id was refused, and is not decided again.
//   - What is older than the log is in the ledger alone. A master that may lack such boards is marked before anything
//     is applied to it, and no board of a class with a ledger begins there before the ledger has answered. Whether a
//     master is damaged is judged by all partitions, so that all writers come to the same.
//
// events.go has what a machine is told and what it answers, machine.go the steps of a rewind, place.go from where a
// partition is read, partition.go its progress, names.go what stays known when slots move, and posts.go when a posted
// command is answered. model_test.go runs histories of failovers in virtual time, and shows for each of these rules one
// that goes wrong without it.
//
// # Glossary
//
//	master    a server of Redis that has boards, by a name that stays the same over failovers
//	era       one server's history between two promotions or restarts: its master_replid
//	position  the offset of the next command of a partition that a master may not have
//	life      a name that a hash of positions gets when it is made
//	round     what happens between two readings of all positions
//	damaged   of a master: it may lack boards that are older than what is read again
//	healed    of a partition and a master: what the master may have lost is applied and published again
package rewind
