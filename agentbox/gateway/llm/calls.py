"""The calls of a vendor's that pass: its POSTs by their paths, the list of its models, and each of these by its id."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agentbox.gateway.llm.types import Call, objects


@dataclass(frozen=True)
class Calls:
    """`posts` by their paths at the provider; `models` is the path of the list there; `ids` what an id of a model may be."""

    posts: tuple[Call, ...]
    models: str
    ids: re.Pattern[str]

    def find(self, method: str, path: str) -> Call | None:
        """`path` has no slash before it. None for all that does not pass."""
        whole = f"/{path}"
        if method == "POST":
            return next((call for call in self.posts if call.path == whole), None)
        if method != "GET":
            return None
        if whole == self.models:
            return Call(name="models", path=self.models, body=False, lists=True)
        name = whole.removeprefix(f"{self.models}/")
        if name == whole or not self.ids.fullmatch(name):
            return None
        return Call(name="models", path=whole, model=name, body=False)


def keep_rows(document: dict[str, Any], allowed: Callable[[str], bool]) -> None:
    """Of a list of models in `data`, by their `id`."""
    document["data"] = [row for row in objects(document.get("data")) if allowed(str(row.get("id", "")))]
