"""A recipe for apps in Python: it keeps the page of a board by the sidecar's stream of
server-sent events, and prints it as it moves."""

import http.client
import json
import random
import sys
import time
from urllib.parse import quote

SILENCE = 15  # seconds; the sidecar sends an event every 5 s
LEAST_WAIT, MOST_WAIT = 0.1, 1.0


class Follower:
    """Keeps a page: run calls changed(kind, page, data) for each event. The kind is page, diff,
    age, end, or away: there is no stream now. The page is a dict as GET .../top answers; None
    before the first, and when the board is blocked or deleted."""

    def __init__(self, sidecar, board, changed):
        self.sidecar, self.changed = sidecar, changed
        self.path = f"/v1/boards/{quote(board, safe='')}/live?limit=50"
        self.last = None  # the stream's page, to which the next diff applies
        self.shown = None  # the same, or a newer one of another sidecar
        self.wait = LEAST_WAIT

    def run(self):
        while True:
            connection = http.client.HTTPConnection(self.sidecar, timeout=SILENCE)
            try:
                self.stream(connection)
                why = "the stream has ended"
            except (OSError, http.client.HTTPException, ValueError) as err:
                why = str(err)
            finally:
                connection.close()
            self.changed("away", self.shown, why)
            time.sleep(self.wait * random.uniform(1, 2))  # all apps of a sidecar lose it at the same time
            self.wait = min(2 * self.wait, MOST_WAIT)

    def stream(self, connection):
        connection.request("GET", self.path, headers={"Last-Event-ID": self.last["id"]} if self.last else {})
        answer = connection.getresponse()
        if answer.status != 200:
            if answer.status < 500:  # blocked or unknown
                self.last = self.shown = None
            raise ValueError(f"{answer.status}: {answer.read(1024).decode()}")
        kind = data = ""
        for line in answer:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "event":
                kind, self.wait = value, LEAST_WAIT
            elif name == "data":
                data = value
            elif name == "retry":
                self.wait = max(LEAST_WAIT, int(value) / 1000)
            elif not name:  # the event is whole
                self.take(kind, json.loads(data))

    def take(self, kind, data):
        if kind == "page":
            self.last = data
        elif kind == "diff":
            if not self.last or self.last["id"] != data["base"]:
                self.last = None  # the next request has no Last-Event-ID, and gets a page
                raise ValueError("a diff of another page")
            self.last = apply(self.last, data)
        elif kind == "end" and data["code"] != "draining":  # blocked or deleted
            self.last = self.shown = None
        if not older(self.last, self.shown):
            self.shown = self.last
        elif kind in ("page", "diff"):
            return  # another sidecar may be behind: its page is shown when it is as new
        self.changed(kind, self.shown, data)


def apply(page, diff):
    """Returns a new page: the page is never changed, so it may be shared."""
    entries = page["entries"][: diff["len"]]
    for row in diff["rows"]:
        at = row.pop("at")
        entries[at : at + 1] = [row]  # at the end: appended
    rest = {name: value for name, value in diff.items() if name not in ("base", "len", "rows")}
    return {**page, **rest, "entries": entries}


def older(page, shown):
    return bool(page and shown) and page["run"] == shown["run"] and (page["seq"] or 0) < (shown["seq"] or 0)


def show(kind, page, data):
    if kind in ("page", "diff"):
        rows = "".join(f" {row['member']}={row['score']}" for row in page["entries"])
        print(f"{kind} {page['seq'] or 0}:{rows}", flush=True)
    elif kind != "age":
        print(f"{kind}: {data}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: live.py SIDECAR BOARD")
    Follower(*sys.argv[1:], show).run()
