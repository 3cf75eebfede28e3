// Package servers starts the servers that rankcache is tried against: a redis-server, a Redis Cluster, a master with
// replicas and sentinels, PostgreSQL, MariaDB, one Apache Kafka broker or several, and kfake, a broker inside this
// process. Tests reach it through package testkit.
//
// A started server listens on loopback, keeps its files in one folder (by default a temporary one, which Close
// removes), and is the child of this process: Close ends it by its pid, and on Linux the kernel does if this process
// dies.
//
// Files, in the order of a start: redis.go, kafka.go, postgres.go and mariadb.go make command line and settings,
// server.go starts, waits, stops, restarts and pauses, process.go is the child process, probe.go checks whether a
// server answers. redis_cluster.go, redis_sentinel.go and kafka_cluster.go join several, by the commands of
// redis_call.go.
//
// Words: a probe is one check whether a server answers; a paused server (SIGSTOP) keeps its connections and is silent.
package servers
