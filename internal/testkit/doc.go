// Package testkit is what the tests of two or more packages need: real servers, names that are free, and waiting by polling.
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
// A test that stops, pauses or restarts a server starts one of its own with StartRedis or StartKafka: the shared ones are used by all tests at once, so a test
// does not flush them. RedisCluster is shared too; StartRedisCluster, StartSentinel and StartKafkaCluster are for one test. Kfake gives a fake broker that makes faults on demand. StartChild runs rankcache itself as a process.
//
// The environment decides what "shared" means. RANKCACHE_TEST_REDIS, _KAFKA, _POSTGRES and _MARIADB (host:port) name servers that run already, as they do
// under "make test", where all packages use the same. Otherwise the first test that needs one starts it for its binary. Where Kafka or Java is not
// installed, Kafka hands out kfake and prints that; what can't do without the real thing is skipped and prints that. RANKCACHE_REQUIRE_REAL=1 makes failures of both.
package testkit
