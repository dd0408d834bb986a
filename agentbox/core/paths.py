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
COMMAND_VARIABLE = "AGENTBOX_COMMAND"
CHECKOUT = Path(__file__).resolve().parents[2]
SYSTEM_ROOTS = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")
"""Where the certificate authorities of a Debian and of a Fedora machine are."""
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


def name_this_command(name: str) -> None:
    """Gives programs that this command starts its name: `agentbox.host.uninstall.orphans`."""
    os.environ[COMMAND_VARIABLE] = name


def temporary_prefix(label: str) -> str:
    """The prefix of a temporary directory of this command: if the command is killed, `uninstall`
    knows whose it was."""
    command = environment().get(COMMAND_VARIABLE, "").replace(":", ".")
    return f"agentbox-{label}-{command or 'unnamed'}-"


def add_to_environment(values: Mapping[str, str]) -> None:
    """Sets variables for programs that this command starts."""
    os.environ.update(values)


def pop_from_environment(name: str) -> str | None:
    """Removes a variable and returns its value, so that no child process inherits it."""
    return os.environ.pop(name, None)


def _at(box_path: str) -> "cached_property[Path]":
    return cached_property(lambda paths: paths.resolve(box_path))


def _below(parent: "cached_property[Path]", name: str) -> "cached_property[Path]":
    return cached_property(lambda paths: parent.__get__(paths) / name)


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

    app = _at("/opt/agentbox")
    venv = _below(app, "venv")
    python = _below(venv, "bin/python")
    skills = _below(app, "skills")
    share = _below(app, "share")
    plan = _below(share, "plan.json")
    probes = _below(share, "probes.json")
    build_record = _below(share, "build.json")
    lock = _below(share, "agentbox.lock")
    layer_files = _below(share, "files")
    # The catalogue of the skills below `skills`.
    skill_catalogue = _below(share, "skills.json")
    baked_manifest = _below(share, "agentbox.toml")
    manifest = _at("/etc/agentbox.toml")
    supervisord_conf = _at("/etc/supervisord.conf")
    run = _at("/run/agentbox")
    sentinel = _below(run, "bootstrap.done")
    boot_record = _below(run, "boot.json")
    boot_events = _below(run, "events.jsonl")
    phases = _below(run, "phases.jsonl")
    ready_dir = _below(run, "ready.d")
    # Start times for the restart backoff, one file per program.
    starts_dir = _below(run, "starts")
    # The plan of a mounted manifest that differs from the baked one, rendered in the box.
    drift_plan = _below(run, "plan.json")
    applied_plan = _below(run, "applied.json")
    drift_probes = _below(run, "probes.json")
    drift_supervisord_conf = _below(run, "supervisord.conf")
    supervisor_socket = _below(run, "supervisor.sock")
    agent_host_socket = _below(run, "agent-host.sock")
    # Tokens of programs for other programs: a directory each, which it can read.
    connections = _below(run, "connections")
    # Of session-host: where it makes its socket.
    session_host_run = _below(run, "session-host")
    session_host_socket = _below(session_host_run, "rpc.sock")
    # The socket of mcp-host and its token, in a directory that the program may write.
    mcp_host = _below(run, "mcp-host")
    mcp_host_socket = _below(mcp_host, "rpc.sock")
    mcp_host_token = _below(mcp_host, "token")
    supervisor_auth = _below(run, "supervisor-auth.conf")
    runtime_hints = _below(run, "runtime.sh")
    # Secrets from the environment, moved here in phase 2 (0400 each).
    moved_secrets = _below(run, "secrets")
    mounted_secrets = _at("/run/secrets")
    # `[network] ca_bundle`, and what phase 2 makes of it: those of the image and the operator's,
    # and the operator's alone. Agents can read the directory.
    mounted_authorities = _at("/run/authorities.pem")
    authorities = _at("/run/authorities")
    all_authorities = _below(authorities, "all.pem")
    own_authorities = _below(authorities, "own.pem")
    # How programs of the box reach others, with user and password of the proxy (0400).
    outgoing = _below(run, "outgoing.json")
    state = _at("/var/lib/agentbox")
    state_secrets = _below(state, "secrets")
    # The API token, created at the first boot, mode 0600.
    api_key = _below(state_secrets, "mgmt-key")
    # Exists while the box is held: a new generation that is not confirmed yet.
    held = _below(state, "held")
    boots = _below(state, "boot")
    # The current or last boot, and whether it ended cleanly.
    boot_current = _below(boots, "current.json")
    # Directory of stored boot records (read by `boot explain`), one file per boot.
    boot_timings = _below(boots, "records")
    state_lock = _below(state, "lock")
    # State of the task runner for recovery after a crash, one file per unfinished task.
    task_spool = _below(state, "tasks")
    # Home directories of exec probes while they run; on a volume, since compiled files must be
    # executable.
    probe_homes = _below(state, "probes")
    branches = _below(state, "branches")
    # The volume with snapshots, and what is staged for one; nothing of it is in a snapshot.
    backups = _below(state, "backups")
    backup_staging = _below(backups, "staging")
    # Of the program backup, for this boot: what to do, and what came of it.
    backup_run = _below(run, "backup")
    backup_request = _below(backup_run, "request.json")
    backup_result = _below(backup_run, "result.json")
    # When backups were tried and verified.
    backup_record = _below(state, "backup.json")
    # The store of session-host.
    sessions = _below(state, "sessions")
    workspace = _at("/workspace")
    logs = _at("/var/log")
    tmp = _at("/tmp")
    screenshots = _below(tmp, "screenshots")
    # Cookies and settings of the desktop programs for this boot (0700).
    desktop = _below(run, "desktop")
    # `XDG_RUNTIME_DIR` of the box's user.
    user_runtime = _at("/run/user/1000")

    def token(self, program: str) -> Path:
        """The per-boot token file of a program (0400)."""
        return self.run / f"{program}.token"

    def agent_host_token(self, program: str) -> Path:
        """What a confined program presents to agent-host, which writes it at each of its starts
        (0400). The program cannot write there, so no link of it is followed."""
        return self.connections / program / "agent-host.token"

    def api_token(self, program: str) -> Path:
        """What the API presents to a confined program, likewise written by the API."""
        return self.connections / program / "management-api.token"

    def password(self, file: str) -> Path:
        """The password of a feature's program, for this boot (0400)."""
        return self.moved_secrets / file

    def slot(self, name: str) -> Path:
        return self.state / name

    def boot_copy(self, boot_id: str) -> Path:
        return self.boots / f"{boot_id}.json"


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
