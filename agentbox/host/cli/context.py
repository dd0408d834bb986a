"""What every verb is given: the common flags, the manifest, the box's folder on this host, a client of the box."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import CHECKOUT, HostPaths
from agentbox.host.cli.manifest_index import Facts, ManifestIndex
from agentbox.host.cli.output import Output, counted

if TYPE_CHECKING:
    from agentbox.client import BoxClient
    from agentbox.host.engines.state import BoxRecord, BoxState
    from agentbox.manifest.load import Manifest


@dataclass(frozen=True)
class Cli:
    """The common flags of one call. `--manifest` defaults to ./agentbox.toml, else to the checkout's."""

    manifest_argument: Path | None = None
    json: bool = False
    quiet: bool = False
    color: bool = True
    timeout: float | None = None

    @cached_property
    def manifest(self) -> Path:
        """The manifest file that this call is about."""
        if self.manifest_argument is not None:
            return self.manifest_argument
        here = Path("agentbox.toml")
        return here if here.exists() else CHECKOUT / "agentbox.toml"

    @property
    def lock(self) -> Path:
        """The lock that goes with the manifest: beside it, else the checkout's."""
        from agentbox.host.packages.bring import lock_path

        return lock_path(self.manifest)

    @cached_property
    def out(self) -> Output:
        return Output(json=self.json, quiet=self.quiet, color=self.color)

    def load_manifest(self) -> Manifest:
        """The manifest, known to have no schema finding.

        Raises AgentboxError: exit 2 when unreadable, exit 1 (after printing the findings) when invalid.
        """
        from agentbox.manifest.load import load

        manifest = load(self.manifest)
        if manifest.effective is None:
            for finding in manifest.findings:
                self.out.error(f"{self.manifest}:{finding}")
            raise AgentboxError(
                f"cannot use {self.manifest}: {counted(len(manifest.findings), 'finding')}",
                "Mend the lines above; `agentbox config validate` checks again.",
                exit_code=ExitCode.BAD,
            )
        return manifest

    def known_record(self) -> BoxRecord | None:
        """The record of the last start; if it is lost or damaged, what the engines still run of this box.

        Raises AgentboxError (exit 1) for a record of something else than this box.
        """
        if (record := self.state().record()) is not None:
            from agentbox.host.engines.places import check_record

            check_record(record, self.facts.name, self.state())
            return record
        from agentbox.host.engines.base import url_of
        from agentbox.host.engines.choose import find

        model = self.load_manifest().usable
        return find(model.meta.name, self.state(), url_of(model.api.publish_address, model.api.port))

    def running_record(self) -> BoxRecord:
        """The same, or AgentboxError (exit 8) when this box is off."""
        return self.known_record() or self.state().running_record()

    def state(self) -> BoxState:
        """The box's folder on this host, named by `meta.name` of the manifest."""
        from agentbox.host.engines.state import BoxState

        return BoxState(HostPaths.of_this_user().box(self.facts.name))

    @cached_property
    def facts(self) -> Facts:
        """What is kept of the manifest, else what it says."""
        if (known := self._index.read()) is not None:
            return known
        found = Facts(self.load_manifest().usable.meta.name)
        self._index.keep(found)
        return found

    def apply(self) -> Mapping[str, str]:
        """`Plan.apply` of the manifest: kept, or made and then kept."""
        from agentbox.host.cli.manifest_index import code_identity, with_apply

        if self.facts.apply is not None and self.facts.code == code_identity():
            return self.facts.apply
        from agentbox.plan.build import apply_of

        made = apply_of(self.load_manifest())
        self._index.keep(with_apply(self.facts, made))
        return made

    @cached_property
    def _index(self) -> ManifestIndex:
        return ManifestIndex(HostPaths.of_this_user().state_root, self.manifest)

    def client(self) -> BoxClient:
        """A client with the URL and the admin token of the running box. Raises AgentboxError (exit 8) when off."""
        from agentbox.client import BoxClient

        record = self.running_record()
        return BoxClient(record.api_url, token=self.token(record))

    def token(self, record: BoxRecord) -> str:
        """The admin token of the box: the one kept by `up`, else given to it as a secret, else read from the box."""
        if kept := self.state().kept_token():
            return kept
        from agentbox.core.paths import Paths
        from agentbox.host.engines.named import engine_named
        from agentbox.host.engines.secrets import collect

        name = self.load_manifest().usable.api.token_env
        try:
            found = (
                collect([name], self.manifest, self.state().secrets_dir).get(name)
                or engine_named(record.engine).read(record, str(Paths().api_key)).decode()
            )
        except (
            AgentboxError,
            OSError,
            UnicodeDecodeError,
        ):  # it does not run, or has made none yet: say what to do about it
            return self.state().token()
        return found.strip()
