// Package servers starts the outside servers that rankcache is tried against: a redis-server, a Redis Cluster, a master with replicas and sentinels, PostgreSQL, MariaDB, an Apache
// Kafka broker of one node, several that are one cluster, and kfake, which is a Kafka broker inside this process. Tests reach it through package testkit; the
// demo and the benchmarks use it as it is.
//
// A started server listens on loopback only, keeps its files in one folder (a temporary one by default) and is the child of this process:
// Close ends it by its pid and removes the temporary folder, and on Linux the kernel ends it should this process die before it could.
//
// Files, in the order of a start: redis.go, kafka.go, postgres.go and mariadb.go make the command line and the settings, server.go is the part that is the same for both (start,
// wait until it answers, stop, restart, pause), process.go is the child process, probe.go checks whether a server answers. redis_cluster.go,
// redis_sentinel.go and kafka_cluster.go join several of them, by the commands of redis_call.go.
//
// Words: a probe is one check whether a server answers; a server that is paused (SIGSTOP) keeps its connections and does not answer.
package servers
