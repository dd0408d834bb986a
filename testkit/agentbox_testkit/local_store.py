"""Fixtures of a contract suite for an implementation that stores its data in a directory of the
box.
"""

import asyncio
import contextlib
import json
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from importlib import import_module
from inspect import get_annotations
from pathlib import Path
from typing import Any, get_args

from agentbox.adapters.runtime.adapter import (
    Adapter,
    Clock,
    Deps,
    SlotConfig,
    SlotName,
    SystemClock,
)
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.adapters.runtime.registry import resolve
from agentbox.core.deadline import Deadline
from agentbox.core.paths import Paths
from agentbox.manifest.declarations.options import Options


class LocalStore:
    """A store below a prefix: creates and opens instances, and destroys their data.

    `impl` is in the registry, or `module:Class` for another class. `options` are keys of the
    options class that the class annotates its `cfg` with; the others have their defaults.
    """

    def __init__(
        self,
        slot: SlotName,
        impl: str,
        prefix: Path,
        *,
        clock: Clock | None = None,
        options: Mapping[str, Any] | None = None,
        secrets: Mapping[str, str] | None = None,
        box_at_host: str = "",
    ) -> None:
        self.cfg = SlotConfig(
            slot=slot,
            use=impl,
            required=False,
            paths=Paths(prefix),
            box="test",
            box_at_host=box_at_host,
            options=options_of(self.class_of(slot, impl))(**(options or {})),
            secrets=secrets or {},
        )
        self.prefix = prefix
        self._clock = clock or SystemClock()
        self._opened: list[Adapter] = []

    def with_options(self, **options: Any) -> "LocalStore":
        """Adds options for the next instances; returns this store."""
        self.cfg = replace(self.cfg, options=self.cfg.options.changed(**options))
        return self

    def with_secrets(self, **secrets: str) -> "LocalStore":
        """Adds credentials for the next instances; returns this store."""
        self.cfg = replace(self.cfg, secrets={**self.cfg.secrets, **secrets})
        return self

    def sibling(self, name: str) -> "LocalStore":
        """Return another store of the same kind in its own directory."""
        return LocalStore(
            self.cfg.slot,
            self.cfg.use,
            self.prefix / name,
            clock=self._clock,
            options=vars(self.cfg.options),
            secrets=self.cfg.secrets,
        )

    @property
    def worker_secrets(self) -> Mapping[str, str]:
        """The credentials for other processes on this store."""
        return self.cfg.secrets

    @property
    def directory(self) -> Path:
        return self.cfg.directory

    def accept_loss(self) -> None:
        """Discards the record of the stored data, as an operator does to start over."""
        (self.directory.parent / "stores" / f"{self.cfg.slot}.json").unlink()

    def class_of(self, slot: SlotName, impl: str) -> type[Adapter]:
        """The class under test."""
        if ":" not in impl:
            return resolve(slot, impl)
        module, name = impl.split(":")
        adapter_class: type[Adapter] = getattr(import_module(module), name)
        return adapter_class

    def make(self) -> Any:
        """Return an instance that is not open."""
        kind = self.class_of(self.cfg.slot, self.cfg.use)
        adapter = kind(self.cfg, Deps(metrics=Metrics(), clock=self._clock))
        self._opened.append(adapter)
        return adapter

    async def open(self) -> Any:
        """Return an open instance; `close_all` closes it."""
        adapter = self.make()
        await adapter.open(Deadline.after(10))
        return adapter

    async def reopen(self) -> Any:
        """Closes all instances and opens the store again."""
        await self.close_all()
        return await self.open()

    async def kill_backend(self) -> None:
        """Removes the directory under the open instance."""
        shutil.rmtree(self.directory)

    async def close_all(self) -> None:
        while self._opened:
            await self._opened.pop().close()

    @contextlib.asynccontextmanager
    async def worker(self, work: str, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """Start another process on the same store, see `agentbox_testkit.worker`. Killed when the
        block ends.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "agentbox_testkit.worker",
            self.cfg.slot,
            self.cfg.use,
            str(self.prefix),
            json.dumps(vars(self.cfg.options)),
            self.cfg.box_at_host,
            work,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 20,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(dict(self.worker_secrets)).encode() + b"\n")
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()


def options_of(adapter_class: type[Adapter]) -> type[Options]:
    """The options class of an adapter: that of its `cfg`."""
    for kind in adapter_class.__mro__:
        if (hint := get_annotations(kind, eval_str=True).get("cfg")) is not None:
            options: type[Options] = get_args(hint)[0]
            return options
    raise TypeError(f"{adapter_class.__name__} has no annotation of cfg")
