"""A client of a language server over stdin and stdout (LSP 3.17): just what completions and
diagnostics need."""

import json
import queue
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

SECONDS = 60.0
Message = dict[str, Any]


class LanguageServer:
    """One server with one directory open. Every wait ends after SECONDS with queue.Empty."""

    def __init__(self, name: str, argv: Sequence[str], folder: Path) -> None:
        self.name, self.folder = name, folder
        self.process = subprocess.Popen(
            argv,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.heard: queue.Queue[Message] = queue.Queue()
        self.problems: dict[str, list[Message]] = {}
        self.asked = self.files = 0
        threading.Thread(target=self._listen, daemon=True).start()
        uri = folder.as_uri()
        abilities = {
            "workspace": {"configuration": True, "workspaceFolders": True},
            "textDocument": {"completion": {}},
        }
        self.ask(
            "initialize",
            {
                "processId": None,
                "rootUri": uri,
                "workspaceFolders": [{"uri": uri, "name": folder.name}],
                "capabilities": abilities,
            },
        )
        self.tell("initialized", {})

    def open(self, text: str) -> str:
        """Writes a new file and opens it in the server; returns its name."""
        self.files += 1
        name = f"{self.files}.toml"
        (self.folder / name).write_text(text)
        document = {"uri": self.uri(name), "languageId": "toml", "version": 1, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": document})
        return name

    def complete(self, name: str, line: int, character: int) -> list[Message]:
        """The proposals at a position, counted from 0."""
        found = self.ask("textDocument/completion", self.at(name, line, character))
        return list(found["items"] if isinstance(found, dict) else found or [])

    def hover(self, name: str, line: int, character: int) -> str:
        """The hover text for the word at a position."""
        found = self.ask("textDocument/hover", self.at(name, line, character))
        return str(found["contents"]["value"]) if found else ""

    def change(self, name: str, text: str) -> None:
        """Changes the text of an open file."""
        document = {"uri": self.uri(name), "version": 2}
        self.tell(
            "textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]}
        )

    def wait_for_problems(self, name: str, wanted: Callable[[set[int]], bool]) -> None:
        """Until the lines, counted from 1, at which the open file has problems are the expected
        ones. A server sends its list again whenever it knows more."""
        uri = self.uri(name)

        def told(_: Message) -> bool:
            problems = self.problems.get(uri)
            return problems is not None and wanted(
                {problem["range"]["start"]["line"] + 1 for problem in problems}
            )

        self._until(told)

    def at(self, name: str, line: int, character: int) -> Message:
        return {
            "textDocument": {"uri": self.uri(name)},
            "position": {"line": line, "character": character},
        }

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def ask(self, method: str, params: Message) -> Any:
        """The result of a request."""
        self.asked += 1
        number = self.asked
        self._send({"id": number, "method": method, "params": params})
        answer = self._until(
            lambda message: message.get("id") == number and "method" not in message
        )
        assert "error" not in answer, answer
        return answer["result"]

    def tell(self, method: str, params: Message) -> None:
        self._send({"method": method, "params": params})

    def close(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def _until(self, wanted: Callable[[Message], bool]) -> Message:
        """Answers requests of the server itself, stores its reports, until a message is the
        expected one."""
        while True:
            message = self.heard.get(timeout=SECONDS)
            if message.get("method") == "textDocument/publishDiagnostics":
                self.problems[message["params"]["uri"]] = message["params"]["diagnostics"]
            elif "method" in message and "id" in message:
                items = message["params"].get("items", ()) if message["params"] else ()
                self._send({"id": message["id"], "result": [None for _ in items] or None})
            if wanted(message):
                return message

    def _send(self, message: Message) -> None:
        assert self.process.stdin
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.process.stdin.flush()

    def _listen(self) -> None:
        assert self.process.stdout
        while (message := _read(self.process.stdout)) is not None:
            self.heard.put(message)


def _read(stream: IO[bytes]) -> Message | None:
    """One message; None at the end."""
    length = 0
    while line := stream.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    body = stream.read(length)
    if not length or len(body) < length:
        return None
    found: Message = json.loads(body)
    return found
