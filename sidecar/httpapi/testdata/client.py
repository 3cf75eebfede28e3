"""Reads a page, a member, a batch and an error with the generated client, and prints what the typed answers hold."""
import json
import sys

from generated import Client
from generated.api.data import boards_batch, member, members_batch, top
from generated.models import BoardRead, BoardsBatchBody, MembersBatchBody

client = Client(base_url=sys.argv[1], raise_on_unexpected_status=True)
page = top.sync("local", client=client, start=1, limit=3, me="m000901")
own = member.sync("local", "m000004", client=client, around=1)
batch = members_batch.sync("local", client=client, body=MembersBatchBody(members=["m000007", "nobody"]))
whole, shut = boards_batch.sync(client=client, body=BoardsBatchBody(boards=[
    BoardRead(board="local", limit=1, me="m000004", around=1, gap=True), BoardRead(board="shut")])).boards
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
    "whole": rows(whole.page.me.neighbours) + [whole.page.me.gap],
    "shut": [shut.board, shut.problem.code.value],
    "refused": [refused.status, refused.code.value, refused.argument],
}))
