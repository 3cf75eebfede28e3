"""A recipe for apps in Python: it reads the page of a board from the sidecar, and from
Redis while the sidecar is away. Each line of its input is a read; a line with a state,
such as the writer answers, reads a page that has that write. With a member the page has
its row, neighbours and profiles, and a line such as +5 gives it points first."""

import http.client
import json
import math
import os
import queue
import socket
import sys
import time
import uuid
from dataclasses import dataclass
from urllib.parse import quote

LIMIT = 50  # rows of a page


@dataclass(frozen=True)
class Page:
    source: str  # local, hot or redis; direct if the app itself asked Redis
    entries: list  # of (member, score), the best first
    state: str = ""  # of the board; empty if not known
    etag: str = ""
    me: dict = None  # rank, score, profile and neighbours; None if not asked for, or not on the board


class Away(Exception):
    """The sidecar or the writer does not answer."""


class Connection(http.client.HTTPConnection):
    """A connection to a socket's path or a host:port, opened when it is first used."""

    def __init__(self, server, timeout=1):
        self.path = server if server.startswith("/") else None
        super().__init__("localhost" if self.path else server, timeout=timeout)

    def connect(self):
        if self.path is None:
            return super().connect()
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Client:
    """Has the connections: make one for the whole process. Threads may share it."""

    def __init__(self, sidecar, redis, me="", writer="", token="", connections=16):
        self.redis, self.me, self.token = redis, me, token
        self.pool, self.posts = queue.LifoQueue(), queue.LifoQueue()
        for _ in range(connections):
            self.pool.put(Connection(sidecar))
            self.posts.put(Connection(writer, timeout=6))  # a writer waits up to 5 s for Redis

    def top(self, board, known=None, state=""):
        """Returns the page of the board. If that has not changed since known, an
        earlier page, it returns known itself. With a state the page has that write."""
        for _ in range(2):  # a connection that was kept may have died with the last process
            try:
                return self.ask(board, known, state)
            except Away:
                pass
        return Page("direct", self.redis(board))

    def ask(self, board, known, state):
        path = f"/v1/boards/{quote(board, safe='')}/top?limit={LIMIT}"
        if self.me:
            path += f"&around=4&profiles=1&me={quote(self.me, safe='')}"
        if state:
            path += f"&wait_ms=200&min_state={quote(state)}"
        status, headers, body = self.send(self.pool, "GET", path, {"If-None-Match": known.etag} if known and known.etag else {})
        if status == 503:
            raise Away(body)
        if status == 304:
            return known
        if status != 200:  # 403 blocked, 412 write_lost: not for Redis
            raise RuntimeError(f"read {board}: {status}: {body.decode()}")
        page = json.loads(body)
        entries = [(row["member"], row["score"]) for row in page["entries"]]
        return Page(page["source"], entries, headers.get("Rankcache-State", ""), headers.get("ETag", ""), page.get("me"))

    def post(self, board, delta):
        """Adds to the score of me, and returns the board's state after it, for the next read."""
        command = {"order": uuid.uuid4().hex, "board": board, "member": self.me, "op": "incr", "delta": delta, "at": time.time_ns() // 1_000_000}
        headers = {"Content-Type": "application/json", "Authorization": "Bearer " + self.token}
        for last in (False, True):  # the same order and at: it counts once
            try:
                status, _, body = self.send(self.posts, "POST", "/v1/scores", headers, json.dumps(command))
                if status == 200:
                    return json.loads(body)["state"]
                if status != 503 or last:  # refused: so is a repeat
                    raise RuntimeError(f"post: {status}: {body.decode()}")
            except Away:  # it may have been counted: post the same again later
                if last:
                    raise

    def send(self, pool, method, path, headers, body=None):
        connection = pool.get()  # the one that was used last
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except (OSError, http.client.HTTPException) as err:
            connection.close()  # its next request opens it again
            raise Away from err
        finally:
            pool.put(connection)


def zrevrange(address, board, integers):
    """Reads from Redis itself. In your app its Redis client does this, with a small pool.
    With integers the fraction of a score is a tie-break, which the sidecar doesn't show."""
    host, port = address.rsplit(":", 1)
    words = ["ZREVRANGE", board, "0", str(LIMIT - 1), "WITHSCORES"]
    command = f"*{len(words)}\r\n" + "".join(f"${len(w.encode())}\r\n{w}\r\n" for w in words)
    with socket.create_connection((host, int(port)), timeout=1) as conn, conn.makefile("rb") as reply:
        conn.sendall(command.encode())
        values = [reply.read(int(reply.readline()[1:]) + 2)[:-2] for _ in range(int(reply.readline()[1:]))]
    scores = [math.floor(float(v)) if integers else float(v) for v in values[1::2]]
    return [(member.decode(), score) for member, score in zip(values[::2], scores)]


def main(sidecar, redis, board, scores="number", me="", writer=""):
    token = os.environ.get("RANKCACHE_WRITE_TOKEN", "")
    client, page = Client(sidecar, lambda b: zrevrange(redis, b, scores == "integer"), me, writer, token), None
    for line in map(str.strip, sys.stdin):
        try:
            state = client.post(board, float(line)) if line.startswith("+") else line
            known, page = page, client.top(board, page, state)
            rows = "".join(f" {member}={score}" for member, score in page.entries)
            if page.me and page.me["rank"]:
                rows += f" | rank {page.me['rank']}, {len(page.me['neighbours'])} near, {(page.me['profile'] or {}).get('nick')}"
            print(f"{'unchanged' if page is known else page.source} {page.state}:{rows}", flush=True)
        except (Away, RuntimeError, OSError, ValueError) as err:
            print("error:", err, flush=True)


if __name__ == "__main__":
    if not 4 <= len(sys.argv) <= 7:
        sys.exit("usage: leaderboard.py SIDECAR REDIS BOARD [integer|number [MEMBER [WRITER]]]")
    main(*sys.argv[1:])
