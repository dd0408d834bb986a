"""The allowed calls of a vendor: its POST paths, the model list, and each model by its id."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agentbox.gateway.llm.vendor_protocol import VendorCall, objects


@dataclass(frozen=True)
class AllowedCalls:
    """`posts`: allowed POST calls; `models`: path of the model list; `model_id`: pattern of a model
    id."""

    posts: tuple[VendorCall, ...]
    models: str
    model_id: re.Pattern[str]

    def find(self, method: str, path: str) -> VendorCall | None:
        """`path` has no leading slash. Returns None for a call that is not allowed."""
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
    """Filters a list of models in `data` by `id`."""
    document["data"] = [
        row for row in objects(document.get("data")) if allowed(str(row.get("id", "")))
    ]
