// Package keeper (no public API) is what one process does for a whole fleet of sidecars.
//
//   - publisher.go: reads the states of all super-hot boards and publishes them in Redis as one value ([wire.States]).
//   - value.go: the value in Redis. [Value.States] is what sidecars read.
//   - times.go: the time on each of several masters, by which the ages of their replicas are told.
//   - reached.go: how far a replica of that Redis is, by the time beside the value. Sidecars of another region read it.
package keeper
