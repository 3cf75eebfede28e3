"""An app with leaderboards in Redis, as it may have been for years: 30 sorted sets, written and read with redis-py.

    python app.py --port 6379              # Redis
    python app.py --port 6390              # rankcache serve --resp 127.0.0.1:6390: nothing else changes

The same seed gives the same commands. It prints a digest of all replies, so that two servers can be compared.
"""

import argparse
import hashlib
import random
import time

import redis

BOARDS = [f"lb:game{n}:weekly" for n in range(30)]
WEEK = 7 * 24 * 3600


def change(client, board, rnd):
    """One change as such apps make it: most are increments."""
    member, points = f"player-{int(rnd.paretovariate(0.6)) % 5000}", rnd.randrange(1, 50)
    match rnd.randrange(10):
        case 0:  # the common idiom: the board lives for a week
            return client.pipeline().zincrby(board, points, member).expire(board, WEEK).execute()
        case 1:
            return client.zadd(board, {member: points * 10}, gt=True, ch=True)
        case 2:
            return client.zadd(board, {member: 0.5, f"{member}-team": points}, nx=True)
        case 3 if rnd.randrange(5) == 0:
            return client.zrem(board, member)
    return client.zincrby(board, points, member)


def read(client, board, rnd):
    """A page, and somebody's own rank and score."""
    member = f"player-{int(rnd.paretovariate(0.6)) % 5000}"
    rows, rank, score = client.pipeline(transaction=False).zrevrange(board, 0, 9, withscores=True).zrevrank(board, member).zscore(board, member).execute()
    return rows, rank, score


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=6379)
    parser.add_argument("--changes", type=int, default=2000)
    parser.add_argument("--reads", type=int, default=2, help="for each change")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rnd, digest, began = random.Random(args.seed), hashlib.sha256(), time.monotonic()
    client = redis.Redis(args.host, args.port, decode_responses=True)
    for _ in range(args.changes):
        board = rnd.choice(BOARDS)
        digest.update(repr(change(client, board, rnd)).encode())
        for _ in range(args.reads):
            digest.update(repr(read(client, board, rnd)).encode())
    print(f"{args.changes} changes, {args.changes * args.reads} reads, {time.monotonic() - began:.1f} s, replies {digest.hexdigest()}")


if __name__ == "__main__":
    main()
