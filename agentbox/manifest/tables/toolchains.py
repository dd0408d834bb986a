"""[toolchains]: languages, agent command lines, the browser editor."""

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.key import key


@frozen
class ToolchainsTable:
    """Languages, agent command lines, the browser editor."""

    node: bool = key(False, "rebuild", doc="Node.js and npm.")
    rust: bool = key(False, "rebuild", doc="Rust and Cargo.")
    go: bool = key(False, "rebuild", doc="Go.")
    cpp: bool = key(False, "rebuild", doc="C and C++: compilers, build tools, debugger.")
    cuda: bool = key(False, "rebuild", doc="CUDA libraries to build with.")
    claude_code: bool = key(
        False, "rebuild", doc="The agent CLI `claude`; brings Node.js where it needs it."
    )
    codex: bool = key(
        False, "rebuild", doc="The agent CLI `codex`; brings Node.js where it needs it."
    )
    gemini_cli: bool = key(
        False, "rebuild", doc="The agent CLI `gemini`; brings Node.js where it needs it."
    )
    opencode: bool = key(
        False, "rebuild", doc="The agent CLI `opencode`; brings Node.js where it needs it."
    )
    claude_acp: bool = key(
        False,
        "rebuild",
        doc="`claude-agent-acp`, by which Claude Code speaks the Agent Client Protocol; needs "
        "`claude_code`.",
    )
    codex_acp: bool = key(
        False,
        "rebuild",
        doc="`codex-acp`, by which Codex speaks the Agent Client Protocol; needs `codex`.",
    )
    code_server: bool = key(
        False, "rebuild", doc="Browser editor on port 8080, never without a password."
    )
