"""The calls of a vendor's that pass: its POSTs by their paths, the list of its models, and each of these by its id."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agentbox.gateway.llm.types import VendorCall, objects


@dataclass(frozen=True)
class AllowedCalls:
    """`posts` by their paths at the provider; `models` is the path of the list there; `ids` what an id of a model may be."""

    posts: tuple[VendorCall, ...]
    models: str
    model_id: re.Pattern[str]

    def find(self, method: str, path: str) -> VendorCall | None:
        """`path` has no slash before it. None for all that does not pass."""
        full_path = f"/{path}"
        if method == "POST":
            return next((call for call in self.posts if call.path == full_path), None)
        if method != "GET":
            return None
        if full_path == self.models:
            return VendorCall(name="models", path=self.models, body=False, lists=True)
        name = full_path.removeprefix(f"{self.models}/")
        if name == full_path or not self.model_id.fullmatch(name):
            return None
        return VendorCall(name="models", path=full_path, model=name, body=False)


def filter_models(document: dict[str, Any], allowed: Callable[[str], bool]) -> None:
    """Of a list of models in `data`, by their `id`."""
    document["data"] = [
        row for row in objects(document.get("data")) if allowed(str(row.get("id", "")))
    ]
