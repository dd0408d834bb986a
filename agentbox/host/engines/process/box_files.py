"""The files of a box below its root, as the image would have them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from agentbox.core.paths import CHECKOUT, Paths
from agentbox.host.engines.base import StartSpec
from agentbox.host.engines.process.privilege_drop import BOX_UID
from agentbox.host.engines.process.volumes import own_workspace
from agentbox.plan.tables import NetworkPlan


def write_box_files(paths: Paths, start: StartSpec) -> None:
    """Writes the files of the image and the directories of the mounts, owned by the box's user."""
    from agentbox.plan.render.files import config_layer, executable_files
    from agentbox.plan.render.skills import plan_skills
    from agentbox.plan.render.supervisord import supervisord

    for directory in (
        paths.share,
        paths.run,
        paths.mounted_secrets,
        paths.state,
        paths.logs / "supervisor",
        paths.tmp,
    ):
        directory.mkdir(parents=True, exist_ok=True)
    link_workspace(paths.workspace, start.project)
    lock = start.lock or (CHECKOUT / "agentbox.lock").read_bytes()
    skills = plan_skills(start.plan, start.skill_folders or None)
    if paths.skills.exists():
        shutil.rmtree(paths.skills)  # a skill that is no longer selected
    layer = config_layer(start.plan, manifest=start.manifest, lock=lock, skills=skills)
    files = {paths.resolve(name): text for name, text in layer.items()}
    files |= {
        paths.manifest: start.manifest,
        paths.supervisord_conf: supervisord(start.plan, paths).encode(),
    }
    for target, content in files.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    for name in executable_files(skills):
        paths.resolve(name).chmod(0o755)
    paths.venv.unlink(missing_ok=True)  # another checkout may have started this box before
    paths.venv.symlink_to(sys.prefix)
    _copy_authorities(paths, start.plan.network)
    write_secrets(paths, {name: start.secrets.get(name, "") for name in start.plan.secrets})
    if os.geteuid() == 0:
        _chown_tree(paths.prefix)


def _copy_authorities(paths: Paths, network: NetworkPlan | None) -> None:
    """In place of the mount: the box's user need not be able to read the operator's file. What an
    earlier boot made of another one goes. Raises AgentboxError (exit 3)."""
    for path in (paths.mounted_authorities, paths.outgoing):
        path.unlink(missing_ok=True)
    shutil.rmtree(paths.authorities, ignore_errors=True)
    if network is not None and network.ca_bundle:
        from agentbox.core.certificates import read_certificates

        text = read_certificates(Path(network.ca_bundle), "network.ca_bundle")
        paths.mounted_authorities.write_text(text)


def write_secrets(paths: Paths, values: Mapping[str, str]) -> None:
    """Writes one file per secret, 0400, owned by the box's user."""
    for name, value in values.items():
        secret = paths.mounted_secrets / name
        secret.unlink(missing_ok=True)  # 0400: its owner may not open it for writing
        secret.write_text(value)
        secret.chmod(0o400)
        if os.geteuid() == 0:
            os.chown(secret, BOX_UID, BOX_UID)


def link_workspace(workspace: Path, project: Path | None) -> None:
    """Links to the project; the box's own workspace is kept beside it meanwhile."""
    saved = own_workspace(workspace)
    if workspace.is_symlink():
        workspace.unlink()
    if project is None:
        if saved.exists() and not workspace.exists():
            saved.rename(workspace)
        workspace.mkdir(exist_ok=True)
        return
    if workspace.exists():
        workspace.rename(saved)
    workspace.symlink_to(project)


def _chown_tree(root: Path) -> None:
    for directory, _names, files in os.walk(root):
        # os.walk gives strings
        for path in (directory, *(os.path.join(directory, name) for name in files)):  # noqa: PTH118
            os.lchown(path, BOX_UID, BOX_UID)
