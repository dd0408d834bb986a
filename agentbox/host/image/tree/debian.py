"""Adds Debian packages to a tree: unpacked, never configured. Output of maintainer scripts is
created here.
"""

from pathlib import Path

from agentbox.core.errors import AgentboxError
from agentbox.host.image.tree import deb, paths_and_modes
from agentbox.host.image.tree.assemble import Tree

_CERTIFICATES = "usr/share/ca-certificates"
_BUNDLE = "etc/ssl/certs/ca-certificates.crt"
_OWNER = "generated:ca-bundle"


def add_skeleton(tree: Tree) -> None:
    """Adds the directories of every box, and the four links that merge `/bin` and similar into
    `/usr`.
    """
    for path in paths_and_modes.SKELETON:
        tree.directory(path)
    for name in paths_and_modes.MERGED:
        tree.link(name, f"usr/{name}", "generated:skeleton")


def add_package(tree: Tree, name: str, file: Path) -> None:
    """Unpacks one package and writes its stanza for scanners. Raises AgentboxError for devices and
    for conflicts.
    """
    owner = f"deb:{name}"
    for info, data in deb.contents(file):
        path = paths_and_modes.image_path(info.name)
        if (
            not path
            or path in paths_and_modes.MERGED
            or path in paths_and_modes.REPLACED
            or paths_and_modes.is_dropped(path)
        ):
            continue
        if info.isdir():
            tree.directory(path)
        elif info.issym():
            tree.link(path, info.linkname, owner)
        elif info.isreg() or info.islnk():
            tree.file(path, data, owner, info.mode)
        else:
            raise AgentboxError(
                f"cannot unpack {info.name} of {file.name}: not a file, directory or link"
            )
    tree.file(f"var/lib/dpkg/status.d/{name}", deb.control(file).encode(), owner)


def add_certificates(tree: Tree) -> None:
    """Adds the bundle of all certificates in the tree, by name, under both common names.

    OpenSSL uses `cert.pem` without hashed links, which a maintainer script would have created.
    """
    certificates = sorted(path for path in (tree.root / _CERTIFICATES).rglob("*.crt"))
    if not certificates:
        return
    tree.file(
        _BUNDLE, b"".join(path.read_bytes().rstrip(b"\n") + b"\n" for path in certificates), _OWNER
    )
    tree.link("etc/ssl/certs/ca-bundle.crt", "ca-certificates.crt", _OWNER)
    tree.link("usr/lib/ssl/cert.pem", f"/{_BUNDLE}", _OWNER)
