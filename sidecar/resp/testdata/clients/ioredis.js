// ioredis against the listener: see TestClients. ioredis.js PORT
const assert = require("assert");
const Redis = require("ioredis");
const readline = require("readline");

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function main() {
  const options = { connectionName: "shop" };
  const r = new Redis(Number(process.argv[2]), options);
  await r.del("k", "list");
  assert.deepEqual(await r.zrevrange("open", 0, 0, "WITHSCORES"), ["m000000", "1000"]);
  assert.equal(await r.zscore("open", "nobody"), null);

  assert.deepEqual(await r.pipeline().zcard("open").incr("k").zrevrank("open", "m000001").exec(), [[null, 10], [null, 1], [null, 1]]);
  assert.deepEqual(await r.multi().incr("k").zcard("open").exec(), [[null, 2], [null, 10]]);

  const other = r.duplicate();
  await r.watch("k");
  await other.set("k", 5);
  assert.equal(await r.multi().incr("k").exec(), null);

  r.defineCommand("count", { numberOfKeys: 1, lua: "return ARGV[1] .. redis.call('ZCARD', KEYS[1])" });
  assert.equal(await r.count("hot", "x"), "x10");

  const sub = r.duplicate();
  const message = new Promise((resolve) => sub.on("message", (_, text) => resolve(text)));
  await sub.subscribe("news");
  await r.publish("news", "hello");
  assert.equal(await message, "hello");

  const popped = other.blpop("list", 5);
  await r.rpush("list", "a");
  assert.deepEqual(await popped, ["list", "a"]);

  console.log("close"); // all connections
  await lines.next();
  assert.equal(await r.zcard("open"), 10);
  console.log("done");
  process.exit(0);
}

main().catch((err) => {
  console.error(err);
  process.exit(1);
});
