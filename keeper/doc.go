// Package keeper (no public API) is what one process does for a whole fleet of sidecars.
//
//   - publisher.go: reads the states of all super-hot boards and publishes them in Redis as one value ([wire.States]).
//   - value.go: the value in Redis. [Value.States] is what sidecars read.
package keeper
