"""[toolchains]: languages, agent command lines, the browser editor."""

from dataclasses import dataclass

from agentbox.manifest.types import key


@dataclass(frozen=True, kw_only=True)
class ToolchainsTable:
    """One switch per feature."""

    node: bool = key(False, "rebuild")
    rust: bool = key(False, "rebuild")
    go: bool = key(False, "rebuild")
    cpp: bool = key(False, "rebuild")
    cuda: bool = key(False, "rebuild")
    claude_code: bool = key(False, "rebuild")
    codex: bool = key(False, "rebuild")
    gemini_cli: bool = key(False, "rebuild")
    opencode: bool = key(False, "rebuild")
    code_server: bool = key(False, "rebuild")
