"""The machine that wheels are chosen for: its markers (PEP 508) and its tags (PEP 425, 600)."""

from dataclasses import dataclass

from packaging.markers import Environment, default_environment
from packaging.requirements import Requirement

_MACHINE = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True)
class Target:
    """CPython of one version on one architecture of Linux with glibc 2.<glibc_minor>."""

    python: str
    arch: str
    glibc_minor: int

    @property
    def machine(self) -> str:
        return _MACHINE[self.arch]

    @property
    def platforms(self) -> tuple[str, ...]:
        """Return every manylinux tag that this C library supports, newest first. arm64 starts with
        glibc 2.17.
        """
        oldest = 5 if self.arch == "amd64" else 17
        modern = tuple(
            f"manylinux_2_{minor}_{self.machine}"
            for minor in range(self.glibc_minor, oldest - 1, -1)
        )
        legacy = (
            ("manylinux2014", "manylinux2010", "manylinux1")
            if self.arch == "amd64"
            else ("manylinux2014",)
        )
        return (*modern, *(f"{name}_{self.machine}" for name in legacy), f"linux_{self.machine}")

    @property
    def pip_flags(self) -> tuple[str, ...]:
        """The flags that make pip choose for this target instead of its own Python."""
        tag = "cp" + self.python.replace(".", "")
        flags = ["--python-version", self.python, "--implementation", "cp"]
        flags += [flag for abi in (tag, "abi3", "none") for flag in ("--abi", abi)]
        return (*flags, *(word for name in self.platforms for word in ("--platform", name)))

    def environment(self, extra: str = "") -> Environment:
        """Return the marker variables of this target. The patch level is unknown: `.0` is the
        minimum.
        """
        variables = default_environment()
        variables["python_version"], variables["python_full_version"] = (
            self.python,
            f"{self.python}.0",
        )
        variables["implementation_version"] = f"{self.python}.0"
        variables["implementation_name"], variables["platform_python_implementation"] = (
            "cpython",
            "CPython",
        )
        variables["os_name"], variables["sys_platform"], variables["platform_system"] = (
            "posix",
            "linux",
            "Linux",
        )
        (
            variables["platform_machine"],
            variables["platform_release"],
            variables["platform_version"],
        ) = self.machine, "", ""
        return {**variables, "extra": extra}  # type: ignore[typeddict-unknown-key]

    def requires(self, requirement: Requirement, extras: frozenset[str] = frozenset()) -> bool:
        """True if the requirement's marker applies here, with any of these extras of its owner."""
        if requirement.marker is None:
            return True
        return any(
            requirement.marker.evaluate(dict(self.environment(extra)))  # type: ignore[arg-type]
            for extra in extras or {""}
        )
