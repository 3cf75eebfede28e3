# redis-py against the listener: see TestClients. redis_py.py PORT
import sys
import threading

import redis

for protocol in (2, 3):
    r = redis.Redis(port=int(sys.argv[1]), decode_responses=True, protocol=protocol, client_name="shop")
    r.delete("k", "list")
    assert r.zrevrange("open", 0, 0, withscores=True) in ([("m000000", 1000.0)], [["m000000", 1000.0]])
    assert r.zscore("open", "nobody") is None and r.zrevrank("open", "m000001") == 1

    pipe = r.pipeline(transaction=False)
    pipe.zcard("open").incr("k").zrange("open", 0, 0, desc=True)
    assert pipe.execute() == [10, 1, ["m000000"]]
    pipe = r.pipeline()
    pipe.incr("k").zcard("open")
    assert pipe.execute() == [2, 10]

    try:
        with r.pipeline() as pipe:
            pipe.watch("k")
            r.set("k", 5)
            pipe.multi()
            pipe.incr("k")
            pipe.execute()
        raise SystemExit("WATCH saw nothing")
    except redis.WatchError:
        pass

    assert r.register_script("return ARGV[1] .. redis.call('ZCARD', KEYS[1])")(keys=["hot"], args=["x"]) == "x10"

    with r.pubsub() as p:
        p.subscribe("news")
        assert p.get_message(timeout=5)["type"] == "subscribe"
        r.publish("news", "hello")
        assert p.get_message(timeout=5)["data"] == "hello"

    push = threading.Thread(target=r.rpush, args=("list", "a"))
    push.start()
    assert list(r.blpop("list", 5)) == ["list", "a"]
    push.join()

    print("close", flush=True)  # all connections
    sys.stdin.readline()
    assert r.zcard("open") == 10
print("done", flush=True)
