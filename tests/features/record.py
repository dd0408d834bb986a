"""`bench/results/features.json`: one row a feature, the last run of each."""

from __future__ import annotations

import json
import platform
import time
from pathlib import Path

from trial import Row

from agentbox.settings import CHECKOUT

RESULTS = CHECKOUT / "bench/results/features.json"


def record(row: Row, file: Path = RESULTS) -> None:
    """Puts the row in place of an earlier one of its feature."""
    document = json.loads(file.read_text()) if file.exists() else {"bench": "features", "rows": {}}
    seen = {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "machine": platform.machine()}
    document["rows"][row.feature] = {**row.to_json(), **seen}
    file.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
