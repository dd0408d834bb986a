"""A sink for CloudEvents that is not an agentbox: a server of its own process, which stores what it
receives in a file. `python events_sink.py FOLDER` writes its port to stdout. `FOLDER/rule.json`,
read at each request, sets how it answers: `status` and `headers` for everything, `single` = 415 to
batches, `largest` bytes = 413, `bad` = names of events that make a request 422."""

import contextlib
import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FORMS = {"application/cloudevents+json": False, "application/cloudevents-batch+json": True}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder = Path()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        form = self.headers["content-type"]
        events = json.loads(body)
        events = events if FORMS[form] else [events]
        rule = json.loads((self.folder / "rule.json").read_text())
        status = self.judged(rule, form, body, events)
        if status < 300:
            self.keep("taken.jsonl", *events)
        asked = {
            "at": time.monotonic(),
            "status": status,
            "form": form,
            "bytes": len(body),
            "count": len(events),
        }
        self.keep("asked.jsonl", asked | {"authorization": self.headers["authorization"]})
        answer = json.dumps({"detail": f"so says the rule: {status}"}).encode()
        self.send_response(status)
        for name, value in {**rule.get("headers", {}), "content-length": str(len(answer))}.items():
            self.send_header(name, value)
        with contextlib.suppress(
            ConnectionError
        ):  # the sender may have exited, and a test may have killed it
            self.end_headers()
            self.wfile.write(answer)

    @staticmethod
    def judged(rule, form, body, events):
        if rule.get("single") and FORMS[form]:
            return 415
        if len(body) > rule.get("largest", 1 << 30):
            return 413
        if {event["subject"] for event in events if "subject" in event} & set(rule.get("bad", ())):
            return 422
        return rule.get("status", 202)

    def keep(self, name, *rows):
        with (self.folder / name).open("a") as out:
            out.write("".join(json.dumps(row) + "\n" for row in rows))
            out.flush()
            os.fsync(out.fileno())

    def log_message(self, *_args):
        """Logs nothing."""


class GenericSink:
    """The server as a child; `rule` changes how it answers from the next request on."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.rule()
        words = [sys.executable, __file__, str(folder)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}/in"

    def rule(self, **rule):
        new = self.folder / "rule.new"
        new.write_text(json.dumps(rule))
        new.replace(self.folder / "rule.json")

    def rows(self, name):
        """What was stored, in order: `taken` events, or `asked` requests."""
        path = self.folder / f"{name}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def seqs(self):
        """Numbers of the events that it took, in order of their coming."""
        return [int(event["agentboxseq"]) for event in self.rows("taken")]

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@contextlib.contextmanager
def generic_sink(folder):
    sink = GenericSink(folder)
    try:
        yield sink
    finally:
        sink.stop()


if __name__ == "__main__":
    Handler.folder = Path(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
