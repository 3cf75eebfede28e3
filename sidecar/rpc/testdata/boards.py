"""Calls rankcache.v1.Boards by grpcio: boards.py HOST:PORT METHOD REQUEST, the request in hex.

It prints each answer in hex, or the code and the message of the error.
"""

import sys

import grpc

address, method, request = sys.argv[1:]
with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
    path, body = "/rankcache.v1.Boards/" + method, bytes.fromhex(request)
    try:
        if method == "Watch":
            for answer in channel.unary_stream(path)(body, timeout=20):
                print(answer.hex(), flush=True)
        else:
            print(channel.unary_unary(path)(body, timeout=20).hex())
    except grpc.RpcError as err:
        print(err.code().name, err.details())
