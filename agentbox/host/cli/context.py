"""What every verb is given: the common flags, the manifest, the box's folder on this host, a client of the box."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import CHECKOUT, HostPaths
from agentbox.host.cli.manifest_cache import ManifestCache, ManifestInfo
from agentbox.host.cli.output import Output, pluralize

if TYPE_CHECKING:
    from agentbox.client import BoxClient
    from agentbox.host.engines.state import BoxRecord, BoxState
    from agentbox.manifest.load import Manifest


@dataclass(frozen=True)
class CliContext:
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
        local = Path("agentbox.toml")
        return local if local.exists() else CHECKOUT / "agentbox.toml"

    @property
    def lock(self) -> Path:
        """The lock that goes with the manifest: beside it, else the checkout's."""
        from agentbox.host.packages.lock_ensurer import lock_path

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
                f"cannot use {self.manifest}: {pluralize(len(manifest.findings), 'finding')}",
                "Mend the lines above; `agentbox config validate` checks again.",
                exit_code=ExitCode.BAD,
            )
        return manifest

    def find_record(self) -> BoxRecord | None:
        """The record of the last start; if it is lost or damaged, what the engines still run of this box.

        Raises AgentboxError (exit 1) for a record of something else than this box.
        """
        if (record := self.state().record()) is not None:
            from agentbox.host.engines.locations import check_record

            check_record(record, self.manifest_info.name, self.state())
            return record
        from agentbox.host.engines.base import box_url
        from agentbox.host.engines.engine_choice import find_running

        model = self.load_manifest().usable
        return find_running(
            model.meta.name, self.state(), box_url(model.api.publish_address, model.api.port)
        )

    def running_record(self) -> BoxRecord:
        """The same, or AgentboxError (exit 8) when this box is off."""
        return self.find_record() or self.state().running_record()

    def state(self) -> BoxState:
        """The box's folder on this host, named by `meta.name` of the manifest."""
        from agentbox.host.engines.state import BoxState

        return BoxState(HostPaths.for_this_user().box(self.manifest_info.name))

    @cached_property
    def manifest_info(self) -> ManifestInfo:
        """What is kept of the manifest, else what it says."""
        if (cached := self._manifest_cache.read()) is not None:
            return cached
        info = ManifestInfo(self.load_manifest().usable.meta.name)
        self._manifest_cache.store(info)
        return info

    def apply_fingerprints(self) -> Mapping[str, str]:
        """`Plan.apply` of the manifest: kept, or made and then kept."""
        from agentbox.host.cli.manifest_cache import code_identity, with_apply

        if self.manifest_info.apply is not None and self.manifest_info.code == code_identity():
            return self.manifest_info.apply
        from agentbox.plan.build import apply_digests

        fingerprints = apply_digests(self.load_manifest())
        self._manifest_cache.store(with_apply(self.manifest_info, fingerprints))
        return fingerprints

    @cached_property
    def _manifest_cache(self) -> ManifestCache:
        return ManifestCache(HostPaths.for_this_user().state_root, self.manifest)

    def client(self) -> BoxClient:
        """A client with the URL and the admin token of the running box. Raises AgentboxError (exit 8) when off."""
        from agentbox.client import BoxClient

        record = self.running_record()
        return BoxClient(record.api_url, token=self.token(record))

    def token(self, record: BoxRecord) -> str:
        """The admin token of the box: the one kept by `up`, else given to it as a secret, else read from the box."""
        if stored := self.state().stored_token():
            return stored
        from agentbox.core.paths import Paths
        from agentbox.host.engines.registry import engine_by_name
        from agentbox.host.engines.secrets import collect_secrets

        name = self.load_manifest().usable.api.token_env
        try:
            value = (
                collect_secrets([name], self.manifest, self.state().secrets_dir).get(name)
                or engine_by_name(record.engine).read(record, str(Paths().api_key)).decode()
            )
        except (
            AgentboxError,
            OSError,
            UnicodeDecodeError,
        ):  # it does not run, or has made none yet: say what to do about it
            return self.state().token()
        return value.strip()
