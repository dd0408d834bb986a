"""Plan in, text out: one module a target. All of them build data and serialise at the end."""

from agentbox.render.compose import compose
from agentbox.render.env import env_file
from agentbox.render.errors import RenderError
from agentbox.render.files import compose_folder, config_layer, render_all
from agentbox.render.options import Options
from agentbox.render.podman import podman_run
from agentbox.render.probes import probes
from agentbox.render.seccomp import seccomp_text
from agentbox.render.security_report import security_report
from agentbox.render.supervisord import supervisord

__all__ = [
    "Options",
    "RenderError",
    "compose",
    "compose_folder",
    "config_layer",
    "env_file",
    "podman_run",
    "probes",
    "render_all",
    "seccomp_text",
    "security_report",
    "supervisord",
]
