"""Context of every command: common flags, manifest, the box's state directory and a client."""

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
    """The common flags. `--manifest` defaults to ./agentbox.toml, else to the checkout's."""

    manifest_argument: Path | None = None
    json: bool = False
    quiet: bool = False
    color: bool = True
    timeout: float | None = None

    @cached_property
    def manifest(self) -> Path:
        """Path of the manifest."""
        if self.manifest_argument is not None:
            return self.manifest_argument
        local = Path("agentbox.toml")
        return local if local.exists() else CHECKOUT / "agentbox.toml"

    @property
    def lock(self) -> Path:
        """Path of the lock file: beside the manifest, else the checkout's."""
        from agentbox.host.packages.lock_ensurer import lock_path

        return lock_path(self.manifest)

    @cached_property
    def out(self) -> Output:
        return Output(json=self.json, quiet=self.quiet, color=self.color)

    def load_manifest(self) -> Manifest:
        """Loads the manifest and checks it against the schema.

        Raises AgentboxError: exit 2 when unreadable, exit 1 (after printing the findings) when
        invalid.
        """
        from agentbox.manifest.load import load

        manifest = load(self.manifest)
        if manifest.effective is None:
            for finding in manifest.findings:
                self.out.error(f"{self.manifest}:{finding}")
            raise AgentboxError(
                f"cannot use {self.manifest}: {pluralize(len(manifest.findings), 'finding')}",
                "Fix the lines above; `agentbox config validate` checks again.",
                exit_code=ExitCode.BAD,
            )
        return manifest

    def use_network(self, manifest: Manifest) -> None:
        """Reaches others as `[network]` says, in this command and the programs that it starts.
        Raises AgentboxError (exit 3)."""
        network = manifest.usable.network
        if not (network.proxy or network.ca_bundle):
            return
        from agentbox.host.engines.secrets import collect_secrets
        from agentbox.host.network.adopt import adopt_authorities, adopt_proxy

        adopt_authorities(network.ca_bundle)
        names = [network.proxy_env] if network.proxy_env else []
        secrets = collect_secrets(names, self.manifest, self.state().secrets_dir)
        adopt_proxy(network.proxy, secrets.get(network.proxy_env, ""), network.no_proxy)

    def find_record(self) -> BoxRecord | None:
        """The record of the last start; if lost or damaged, what the engines report for this box.

        Raises AgentboxError (exit 1) for the record of another box.
        """
        from agentbox.host.engines.locations import check_record, rehearsal_of

        if rehearsal_of(self.state()).directory.exists():
            from agentbox.host.cli.stages.rehearsal import remove_leftover

            remove_leftover(self)
        if (record := self.state().record()) is not None:
            check_record(record, self.manifest_info.name, self.state())
            return record
        from agentbox.host.engines.base import box_url
        from agentbox.host.engines.engine_choice import find_running

        model = self.load_manifest().usable
        return find_running(
            model.meta.name, self.state(), box_url(model.api.publish_address, model.api.port)
        )

    def running_record(self) -> BoxRecord:
        """Like `find_record`; raises AgentboxError (exit 8) when the box is not running."""
        return self.find_record() or self.state().running_record()

    def state(self) -> BoxState:
        """The box's state directory on this host, named by `meta.name` of the manifest."""
        from agentbox.host.engines.state import BoxState

        return BoxState(HostPaths.for_this_user().box(self.manifest_info.name))

    @cached_property
    def manifest_info(self) -> ManifestInfo:
        """The cached facts of the manifest; reads and stores them on a miss."""
        if (cached := self._manifest_cache.read()) is not None:
            return cached
        info = ManifestInfo(self.load_manifest().usable.meta.name)
        self._manifest_cache.store(info)
        return info

    def apply_fingerprints(self) -> Mapping[str, str]:
        """`Plan.apply` of the manifest, cached."""
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
        """A client with the URL and admin token of the running box. Raises AgentboxError (exit
        8)."""
        from agentbox.client import BoxClient

        record = self.running_record()
        return BoxClient(record.api_url, token=self.token(record))

    def workspace_directory(self) -> Path | None:
        """The workspace of the running box as a directory of this host; None if it is a volume."""
        from agentbox.core.paths import Paths

        record = self.running_record()
        if record.project:
            return Path(record.project)
        return Paths(Path(record.root)).workspace if record.root else None

    def token(self, record: BoxRecord) -> str:
        """The admin token: the one stored by `up`, else the box's secret, else read from the
        box."""
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
        ):  # not running, or no token yet: `state.token` raises with a hint
            return self.state().token()
        return value.strip()
