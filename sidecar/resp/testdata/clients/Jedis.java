import java.util.List;
import java.util.concurrent.CompletableFuture;
import redis.clients.jedis.*;
import redis.clients.jedis.resps.Tuple;

/** Jedis against the listener: see TestClients. Jedis.java PORT */
public class Jedis {
  public static void main(String[] args) throws Exception {
    for (RedisProtocol protocol : RedisProtocol.values()) {
      run(Integer.parseInt(args[0]), protocol);
    }
    System.out.println("done");
  }

  static void run(int port, RedisProtocol protocol) throws Exception {
    JedisClientConfig config = DefaultJedisClientConfig.builder().protocol(protocol).clientName("shop").build();
    try (JedisPooled r = new JedisPooled(new HostAndPort("127.0.0.1", port), config)) {
      r.del("k", "list");
      want(r.zrevrangeWithScores("open", 0, 0), List.of(new Tuple("m000000", 1000.0)));
      want(r.zscore("open", "nobody"), null);

      try (AbstractPipeline pipe = r.pipelined()) {
        Response<Long> members = pipe.zcard("open"), k = pipe.incr("k"), rank = pipe.zrevrank("open", "m000001");
        pipe.sync();
        want(List.of(members.get(), k.get(), rank.get()), List.of(10L, 1L, 1L));
      }
      try (AbstractTransaction tx = r.multi()) {
        tx.incr("k");
        tx.zcard("open");
        want(tx.exec(), List.of(2L, 10L));
      }
      try (AbstractTransaction tx = r.transaction(false)) {
        tx.watch("k");
        r.set("k", "5");
        tx.multi();
        tx.incr("k");
        want(tx.exec(), null);
      }

      want(r.eval("return ARGV[1] .. redis.call('ZCARD', KEYS[1])", List.of("hot"), List.of("x")), "x10");

      CompletableFuture<String> message = new CompletableFuture<>();
      r.subscribe(new JedisPubSub() {
        @Override public void onSubscribe(String channel, int n) { CompletableFuture.runAsync(() -> r.publish(channel, "hello")); }
        @Override public void onMessage(String channel, String text) { message.complete(text); unsubscribe(); }
      }, "news");
      want(message.get(), "hello");

      CompletableFuture<Void> push = CompletableFuture.runAsync(() -> r.rpush("list", "a"));
      want(r.blpop(5, "list"), List.of("list", "a"));
      push.join();

      System.out.println("close"); // all connections
      System.in.read();
      r.getPool().clear(); // Jedis shows a broken connection to the caller, and does not try again
      want(r.zcard("open"), 10L);
    }
  }

  static void want(Object got, Object want) {
    if (got == null ? want != null : !got.equals(want)) {
      throw new AssertionError(got + ", want " + want);
    }
  }
}
