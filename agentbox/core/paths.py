"""The only reader of the process environment, and the only file with literal paths. `Paths` are
those of the box: below `/` in a container, below a prefix with the process engine. `HostPaths` are
the operator's: state, cache, virtual environment. Standard library only: Stage A of the boot
imports this."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agentbox.core.errors import AgentboxError, ExitCode

PREFIX_VARIABLE = "AGENTBOX_PREFIX"
CHECKOUT = Path(__file__).resolve().parents[2]
_BOX_ROOTS = (
    "/opt/agentbox",
    "/etc/agentbox.toml",
    "/etc/supervisord.conf",
    "/run",
    "/var",
    "/workspace",
    "/tmp",
)


def environment() -> Mapping[str, str]:
    """The process environment as it is now."""
    return os.environ


def pop_from_environment(name: str) -> str | None:
    """Removes a variable and returns its value, so that no child process inherits it."""
    return os.environ.pop(name, None)


@dataclass(frozen=True)
class Paths:
    """Every path of a box."""

    prefix: Path = Path("/")

    @classmethod
    def for_this_process(cls) -> "Paths":
        """The paths of the box that this process runs in: `AGENTBOX_PREFIX` if the process engine
        set it, else `/`."""
        return cls(Path(environment().get(PREFIX_VARIABLE, "/")))

    def resolve(self, box_path: str) -> Path:
        """The location of an absolute path of the plan: below the prefix if the box owns it, else
        (`/usr`) unchanged."""
        owned = any(box_path == root or box_path.startswith(root + "/") for root in _BOX_ROOTS)
        return self.prefix / box_path.lstrip("/") if owned else Path(box_path)

    @property
    def is_container(self) -> bool:
        """True if the box has its own root; false with the process engine."""
        return self.prefix == Path("/")

    @cached_property
    def app(self) -> Path:
        return self.resolve("/opt/agentbox")

    @cached_property
    def venv(self) -> Path:
        return self.app / "venv"

    @cached_property
    def python(self) -> Path:
        return self.venv / "bin/python"

    @cached_property
    def skills(self) -> Path:
        return self.app / "skills"

    @cached_property
    def share(self) -> Path:
        return self.app / "share"

    @cached_property
    def plan(self) -> Path:
        return self.share / "plan.json"

    @cached_property
    def probes(self) -> Path:
        return self.share / "probes.json"

    @cached_property
    def build_record(self) -> Path:
        return self.share / "build.json"

    @cached_property
    def lock(self) -> Path:
        return self.share / "agentbox.lock"

    @cached_property
    def layer_files(self) -> Path:
        return self.share / "files"

    @cached_property
    def baked_manifest(self) -> Path:
        return self.share / "agentbox.toml"

    @cached_property
    def manifest(self) -> Path:
        return self.resolve("/etc/agentbox.toml")

    @cached_property
    def supervisord_conf(self) -> Path:
        return self.resolve("/etc/supervisord.conf")

    @cached_property
    def run(self) -> Path:
        return self.resolve("/run/agentbox")

    @cached_property
    def sentinel(self) -> Path:
        return self.run / "bootstrap.done"

    @cached_property
    def boot_record(self) -> Path:
        return self.run / "boot.json"

    @cached_property
    def boot_events(self) -> Path:
        return self.run / "events.jsonl"

    @cached_property
    def phases(self) -> Path:
        return self.run / "phases.jsonl"

    @cached_property
    def ready_dir(self) -> Path:
        return self.run / "ready.d"

    @cached_property
    def starts_dir(self) -> Path:
        """Start times for the restart backoff, one file per program."""
        return self.run / "starts"

    @cached_property
    def drift_plan(self) -> Path:
        """The plan of a mounted manifest that differs from the baked one, rendered in the box."""
        return self.run / "plan.json"

    @cached_property
    def applied_plan(self) -> Path:
        return self.run / "applied.json"

    @cached_property
    def drift_probes(self) -> Path:
        return self.run / "probes.json"

    @cached_property
    def drift_supervisord_conf(self) -> Path:
        return self.run / "supervisord.conf"

    @cached_property
    def supervisor_socket(self) -> Path:
        return self.run / "supervisor.sock"

    @cached_property
    def agent_host_socket(self) -> Path:
        return self.run / "agent-host.sock"

    def token(self, program: str) -> Path:
        """The per-boot token file of a program (0400)."""
        return self.run / f"{program}.token"

    @cached_property
    def supervisor_auth(self) -> Path:
        return self.run / "supervisor-auth.conf"

    @cached_property
    def runtime_hints(self) -> Path:
        return self.run / "runtime.sh"

    @cached_property
    def moved_secrets(self) -> Path:
        """Secrets from the environment, moved here in phase 2 (0400 each)."""
        return self.run / "secrets"

    def password(self, file: str) -> Path:
        """The password of a feature's program, for this boot (0400)."""
        return self.moved_secrets / file

    @cached_property
    def mounted_secrets(self) -> Path:
        return self.resolve("/run/secrets")

    @cached_property
    def state(self) -> Path:
        return self.resolve("/var/lib/agentbox")

    def slot(self, name: str) -> Path:
        return self.state / name

    @cached_property
    def state_secrets(self) -> Path:
        return self.state / "secrets"

    @cached_property
    def api_key(self) -> Path:
        """The API token, created at the first boot, mode 0600."""
        return self.state_secrets / "mgmt-key"

    @cached_property
    def boots(self) -> Path:
        return self.state / "boot"

    @cached_property
    def boot_current(self) -> Path:
        """The current or last boot, and whether it ended cleanly."""
        return self.boots / "current.json"

    def boot_copy(self, boot_id: str) -> Path:
        return self.boots / f"{boot_id}.json"

    @cached_property
    def boot_timings(self) -> Path:
        """Directory of stored boot records (read by `boot explain`), one file per boot."""
        return self.boots / "records"

    @cached_property
    def state_lock(self) -> Path:
        return self.state / "lock"

    @cached_property
    def task_spool(self) -> Path:
        """State of the task runner for recovery after a crash, one file per unfinished task."""
        return self.state / "tasks"

    @cached_property
    def probe_homes(self) -> Path:
        """Home directories of exec probes while they run; on a volume, since compiled files must be
        executable."""
        return self.state / "probes"

    @cached_property
    def branches(self) -> Path:
        return self.state / "branches"

    @cached_property
    def workspace(self) -> Path:
        return self.resolve("/workspace")

    @cached_property
    def logs(self) -> Path:
        return self.resolve("/var/log")

    @cached_property
    def tmp(self) -> Path:
        return self.resolve("/tmp")

    @cached_property
    def screenshots(self) -> Path:
        return self.tmp / "screenshots"

    @cached_property
    def desktop(self) -> Path:
        """Cookies and settings of the desktop programs for this boot (0700)."""
        return self.run / "desktop"

    @cached_property
    def user_runtime(self) -> Path:
        """`XDG_RUNTIME_DIR` of the box's user."""
        return self.resolve("/run/user/1000")


@dataclass(frozen=True)
class HostPaths:
    """Paths of the CLI on the operator's machine (directories are created with mode 0700 by their
    writers)."""

    state_root: Path
    cache: Path

    @classmethod
    def for_this_user(cls) -> "HostPaths":
        """`AGENTBOX_STATE_DIR`, else the XDG directories of the calling user, under sudo those of
        `SUDO_USER`. Raises AgentboxError if that user is unknown."""
        env = environment()
        state = (
            env.get("AGENTBOX_STATE_DIR")
            or _user_directory(env, "XDG_STATE_HOME", ".local/state") / "agentbox"
        )
        cache = (
            env.get("AGENTBOX_CACHE_DIR")
            or _user_directory(env, "XDG_CACHE_HOME", ".cache") / "agentbox"
        )
        return cls(Path(state), Path(cache))

    def box(self, name: str) -> Path:
        """The state directory of the box with that `meta.name`."""
        return self.state_root / name


def _user_directory(env: Mapping[str, str], variable: str, below_home: str) -> Path:
    """A directory of the caller. Under sudo root's environment does not apply."""
    if os.geteuid() == 0 and (sudo_user := env.get("SUDO_USER")):
        return _home_directory(sudo_user) / below_home
    return Path(
        env.get(variable) or Path(env.get("HOME") or _home_directory(os.geteuid())) / below_home
    )


def _home_directory(user: str | int) -> Path:
    import pwd  # rarely needed, and slow to import

    try:
        return Path((pwd.getpwuid(user) if isinstance(user, int) else pwd.getpwnam(user)).pw_dir)
    except KeyError:
        raise AgentboxError(
            f"cannot find the directories of the calling user: unknown user {user}",
            "Set AGENTBOX_STATE_DIR and AGENTBOX_CACHE_DIR, or HOME; or unset SUDO_USER to work as "
            "root.",
            exit_code=ExitCode.USAGE,
        ) from None
