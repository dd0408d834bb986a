"""Writes the synchronous client, `agentbox/client/sync/`, from the asynchronous one. Run it after a
change of `agentbox/client/async_client/`; tests/unit/client/test_sync_client.py fails until then.

`api_caller.py` is written by hand in both: their transports differ (`client/http_transport.py`).
"""

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agentbox.core.paths import CHECKOUT
from unasync import Rule, unasync_files

from client_operations import RESOURCES, formatted

SOURCE: Final = CHECKOUT / "agentbox/client/async_client"
TARGET: Final = CHECKOUT / "agentbox/client/sync"
MODULES: Final = (*RESOURCES, "attach", "client", "pods", "request_sender", "sandbox_files")
_HEADER: Final = "# Written by tools/sync_client.py from async_client/{name}.py.\n"
_NAMES: Final = {"async_client": "sync", "aclose": "close", "aiter_raw": "iter_bytes"}
_NAMES_OF: Final = {"attach": {"asyncio": "sync"}}


def generate() -> Mapping[Path, str]:
    """The text of each file."""
    with tempfile.TemporaryDirectory() as temporary:
        source, target = Path(temporary) / "async_client", Path(temporary) / "sync"
        source.mkdir()
        for name in MODULES:
            source.joinpath(f"{name}.py").write_text(SOURCE.joinpath(f"{name}.py").read_text())
        names = _NAMES | _class_names()
        for name in MODULES:
            rule = Rule(f"{source}/", f"{target}/", names | _NAMES_OF.get(name, {}))
            unasync_files([str(source / f"{name}.py")], [rule])
        return {
            TARGET / f"{name}.py": formatted(
                TARGET / f"{name}.py",
                _HEADER.format(name=name) + target.joinpath(f"{name}.py").read_text(),
            )
            for name in MODULES
        }


def _class_names() -> dict[str, str]:
    """`AsyncBoxClient` is `BoxClient`, and so on; unasync itself would write `SyncBoxClient`."""
    text = "".join(SOURCE.joinpath(f"{name}.py").read_text() for name in MODULES)
    return {name: name.removeprefix("Async") for name in re.findall(r"\bAsync[A-Z]\w+", text)}


if __name__ == "__main__":
    for path, text in generate().items():
        path.write_text(text)
