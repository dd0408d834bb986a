"""E007: ComfyUI is both built in and external."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E007", "0.1"
TITLE = "two ComfyUI instances"
REASON = """\
A skill uses one instance. With a built-in one and another one, half of the work would go
to the wrong instance."""
READS = ("skills.media.comfyui_builtin", "skills.media.comfyui_url")
BAD = """
[skills.media]
comfyui_builtin = true
comfyui_url = "https://pictures.example"
"""
GOOD = """
[skills.media]
comfyui_url = "https://pictures.example"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    if context["skills.media.comfyui_builtin"] and context["skills.media.comfyui_url"]:
        yield context.finding(
            "skills.media.comfyui_url",
            message="ComfyUI is built in, and skills.media.comfyui_url names an instance elsewhere",
            remedy="Keep one: remove skills.media.comfyui_url, or set skills.media.comfyui_builtin "
            "= false.",
            related=("skills.media.comfyui_builtin",),
        )
