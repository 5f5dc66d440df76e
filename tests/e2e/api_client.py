"""Asks a server over HTTP and reads event streams; nothing but the standard library."""

import http.client
import json


def post_bytes(server, path, body, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"} | (headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def post(server, path, body, headers=None):
    """(status, parsed answer) of a JSON body."""
    status, data = post_bytes(server, path, json.dumps(body), headers)
    return status, json.loads(data.decode("utf-8"))


class EventStream:
    """The events of a streamed answer, parsed; close() leaves in the middle."""

    def __init__(self, server, path, body):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        self.connection.request("POST", path, json.dumps(body | {"stream": True}))
        # getresponse() may hand the socket over to the answer, so it is kept for close().
        self.socket = self.connection.sock
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        self.is_done = False

    def __iter__(self):
        for line in self.answer:
            text = line.decode("utf-8").rstrip("\n")
            if not text:
                continue
            assert text.startswith("data: "), text
            assert not self.is_done, "an event behind [DONE]"
            if text == "data: [DONE]":
                self.is_done = True
            else:
                yield json.loads(text[6:])
        assert self.is_done, "the stream ended without [DONE]"

    def close(self):
        self.answer.close()
        self.socket.close()
        self.connection.close()


def stream_text(server, path, body):
    """All text of choice 0 of a streamed answer, and its finish reason."""
    text, finish = "", None
    for chunk in EventStream(server, path, body):
        for choice in chunk["choices"]:
            text += choice["text"] if "text" in choice else choice["delta"].get("content", "")
            finish = choice["finish_reason"] or finish
    return text, finish
