"""Stage 1: no manifest with an error finding goes any further."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbox.cli.context import Cli
from agentbox.cli.output import counted
from agentbox.errors import AgentboxError, ExitCode

if TYPE_CHECKING:
    from agentbox.manifest import Manifest


def validated(cli: Cli) -> Manifest:
    """The manifest, with schema and rules applied; warnings are printed. Raises AgentboxError (exit 1) on errors."""
    from agentbox.features import load_features
    from agentbox.rules import run

    manifest = cli.load_manifest()
    report = run(manifest, features=load_features())
    errors = [finding for finding in report.findings if finding.severity == "error"]
    for finding in report.findings:
        if finding.severity != "info":
            cli.out.error(f"{cli.manifest}:{finding}")
    if errors:
        raise AgentboxError(
            f"cannot use {cli.manifest}: {counted(len(errors), 'error')}",
            "Mend the lines above; `agentbox config explain CODE` says more.",
            exit_code=ExitCode.BAD,
        )
    return manifest
