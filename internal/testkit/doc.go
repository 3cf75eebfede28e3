// Package testkit is what the tests of several packages need: real servers, free names, waiting by polling.
//
// A package whose tests use the shared servers hands its TestMain over, which is how they are ended:
//
//	func TestMain(m *testing.M) { testkit.Main(m) }
//
//	func TestReplay(t *testing.T) {
//		broker := testkit.Kafka(t)                                      // host:port, one broker for the whole test binary
//		cache := testkit.Redis(t)                                       // host:port
//		board := testkit.Name(t)                                        // a board or topic that no other test has
//		testkit.CreateTopic(t, broker, board, 1, nil)
//		…
//		testkit.Eventually(t, 5*time.Second, func() error { … })
//	}
//
// All tests share Redis, Kafka and RedisCluster, so none flushes or stops them; StartRedis, StartKafka,
// StartRedisCluster, StartSentinel and StartKafkaCluster start servers for one test. Kfake is a fake broker that makes
// faults on demand. StartChild runs rankcache itself as a process.
//
// RANKCACHE_TEST_REDIS, _KAFKA, _POSTGRES and _MARIADB (host:port) name servers that run already, as under "make test".
// Otherwise the first test that needs one starts it for its binary. Where Kafka or Java is not installed, Kafka hands
// out kfake, and what needs the real thing is skipped; both are printed, and failures with RANKCACHE_REQUIRE_REAL=1.
package testkit
