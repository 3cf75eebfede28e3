"""Reads a page, a member, a batch and an error with the generated client, and prints what the typed answers hold."""
import json
import sys

from generated import Client
from generated.api.data import member, members_batch, top
from generated.models import MembersBatchBody

client = Client(base_url=sys.argv[1], raise_on_unexpected_status=True)
page = top.sync("local", client=client, start=1, limit=3, me="m000901")
own = member.sync("local", "m000004", client=client, around=1)
batch = members_batch.sync("local", client=client, body=MembersBatchBody(members=["m000007", "nobody"]))
refused = top.sync("local", client=client, limit=501)


def rows(of):
    return [[row.rank, row.member, row.score] for row in of]


print(json.dumps({
    "total": page.total,
    "entries": rows(page.entries),
    "me": rows([page.me]),
    "own": rows([own]),
    "neighbours": rows(own.neighbours),
    "members": rows(batch.members),
    "refused": [refused.status, refused.code.value, refused.argument],
}))
