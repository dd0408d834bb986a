"""Inputs -> a lock: each source is resolved in turn, the seed is downloaded and hashed."""

from collections.abc import Sequence
from pathlib import Path

from agentbox.core.progress import Progress
from agentbox.host.packages.apt import apt_resolver
from agentbox.host.packages.apt.apt_origin import origins
from agentbox.host.packages.apt.apt_root import AptRoot
from agentbox.host.packages.apt.apt_sources import host_mirror
from agentbox.host.packages.apt.suite_versions import suite_by_name
from agentbox.host.packages.errors import ResolveError
from agentbox.host.packages.lock_inputs import debian_lists, python_lists, unused_debian
from agentbox.host.packages.npm import npm_resolver
from agentbox.host.packages.pins import Pins
from agentbox.host.packages.python import python_resolver
from agentbox.host.packages.python.index import Index
from agentbox.host.packages.python.pip_config import pip_config
from agentbox.host.packages.store.build_tools import PACKAGES, unpacked_seed
from agentbox.host.packages.store.nar import nar_sha256
from agentbox.host.packages.transfer.cache import Cache
from agentbox.host.packages.transfer.download import Downloads
from agentbox.plan.lockfile.inputs import LockInputs
from agentbox.plan.lockfile.model import ARCH_OF_SYSTEM, BuildTools, DebEntry, Lock

_SEED_JOBS = 2


def resolve(inputs: LockInputs, pins: Pins, cache: Path, progress: Progress) -> Lock:
    """Return the lock for these inputs. Only the cache directory is written.

    Raises ResolveError (exit 5), FetchError (exit 4) without network, PrerequisiteError (exit 3)
    without apt or mirror.
    """
    if inputs.source != "debian":
        raise ResolveError(
            f"cannot lock packages of {inputs.source}: their versions are pinned by flake.lock"
        )
    suite = suite_by_name(inputs.suite)
    archs = [ARCH_OF_SYSTEM[system] for system in inputs.systems]
    roots = apt_roots(cache, inputs.suite, archs)
    debian, seed = {}, {}
    for root in roots:
        debian[root.arch] = _debian(root, inputs, pins, progress)
        seed[root.arch] = _seed(root, cache, progress)
    index = Index(pip_config())
    progress.stage("resolve Python packages")
    wheel_rows = python_resolver.resolve(
        index, suite, sorted(archs), python_lists(inputs), pins.wheels, inputs.unused_requirements
    )
    progress.done()
    return Lock(
        inputs=inputs.digest(),
        source=inputs.source,
        suite=inputs.suite,
        python=inputs.python,
        systems=tuple(sorted(inputs.systems)),
        features=tuple(sorted(inputs.features)),
        seed=seed,
        debian=debian,
        wheels=wheel_rows,
        npm=npm_resolver.resolve(inputs, sorted(archs), pins.npm, progress),
        skills=inputs.skills,
    )


def apt_roots(cache: Path, suite: str, archs: Sequence[str]) -> list[AptRoot]:
    """Return a private apt for each architecture. Raises PrerequisiteError (exit 3)."""
    mirror = host_mirror()
    return [AptRoot(cache / "apt", mirror, suite, arch) for arch in sorted(archs)]


def _debian(
    root: AptRoot, inputs: LockInputs, pins: Pins, progress: Progress
) -> tuple[DebEntry, ...]:
    progress.stage(f"resolve Debian packages for {root.arch}")
    with root.locked():
        root.update()
        rows = apt_resolver.resolve(
            root, debian_lists(inputs), pins.debian.get(root.arch, {}), unused_debian(inputs)
        )
    _check_python(rows, inputs)
    progress.done()
    return rows


def _check_python(rows: Sequence[DebEntry], inputs: LockInputs) -> None:
    """Wheels were chosen for the suite's Python: another one in the closure would not find them."""
    python = next((row for row in rows if row.name == "python3"), None)
    if python is not None and ".".join(python.version.split(".")[:2]) != inputs.python:
        raise ResolveError(
            f"cannot lock suite {inputs.suite}: its Python is {python.version}, not {inputs.python}"
        )


def _seed(root: AptRoot, cache: Path, progress: Progress) -> BuildTools:
    with root.locked():
        rows = tuple(
            sorted(
                apt_resolver.lock_entry(record)
                for record in apt_resolver.package_records(root, sorted(PACKAGES))
            )
        )
    store = Cache(cache / "files")
    missing = [row for row in rows if not store.has(row)]
    Downloads(store, progress, _SEED_JOBS).run(
        f"fetch build tools for {root.arch}", origins(root, missing)
    )
    with unpacked_seed({row.name: store.path(row) for row in rows}) as directory:
        return BuildTools(files=rows, nar=nar_sha256(directory))
