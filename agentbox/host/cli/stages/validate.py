"""Stage 1: validates the manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.output import pluralize

if TYPE_CHECKING:
    from agentbox.manifest.load import Manifest


def load_valid_manifest(cli: CliContext) -> Manifest:
    """Loads and validates the manifest; prints findings. From then on this command reaches others
    as `[network]` says. Raises AgentboxError (exit 1) on errors."""
    from agentbox.manifest.features.loader import load_features
    from agentbox.manifest.rules.engine import run_rules

    manifest = cli.load_manifest()
    report = run_rules(manifest, features=load_features())
    errors = [finding for finding in report.findings if finding.severity == "error"]
    for finding in report.findings:
        if finding.severity != "info":
            cli.out.error(f"{cli.manifest}:{finding}")
    if errors:
        raise AgentboxError(
            f"cannot use {cli.manifest}: {pluralize(len(errors), 'error')}",
            "Fix the lines above; `agentbox config explain CODE` explains each.",
            exit_code=ExitCode.BAD,
        )
    _check_skills(manifest)
    cli.use_network(manifest)
    return manifest


def _check_skills(manifest: Manifest) -> None:
    """The manifest's own skills that it selects; those of agentbox are checked by its tests. Raises
    AgentboxError (exit 1) naming each bad one."""
    from agentbox.host.packages.lock_inputs import own_skills
    from agentbox.manifest.skills.corpus import select_skills
    from agentbox.manifest.skills.validator import require_valid

    corpus = manifest.usable.skills.corpus
    own = {path.name: path for path in own_skills(manifest)} if corpus.paths else {}
    selected = select_skills(corpus.include, corpus.exclude, own)
    require_valid({name: own[name] for name in selected})
