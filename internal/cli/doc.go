// Package cli is what the commands of rankcache share: the command line and its exit codes, the configuration, secrets,
// addresses and listeners, the log, the health port, metrics, and the settings of Redis and Kafka.
//
// [Main] prints and exits; [Run] does the work and can be called by a test.
//
// Words: a setting is a flag, an environment variable and a key of the file, by one
// name; a secret is a setting that is never printed; a listener is named by its flag.
package cli
