"""The compressed size limit of the common layers. Layers of optional features are the operator's
choice.
"""

import json
from pathlib import Path
from typing import Any


def exceeding_budget(layers: list[dict[str, Any]], budget: int) -> list[str]:
    """Report if all compressed layers except those of features together exceed `budget` bytes."""
    core = [row for row in layers if not row["name"].startswith("f-")]
    sizes = {
        row["name"]: json.loads((Path(row["packed"]) / "layer.json").read_bytes())["size"]
        for row in core
    }
    total = sum(sizes.values())
    if total <= budget:
        return []
    listed = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in sizes.items())
    return [
        (
            f"the image has {total / 1e6:.1f} MB compressed, the budget is {budget / 1e6:.0f} MB: "
            f"{listed}"
        )
    ]
