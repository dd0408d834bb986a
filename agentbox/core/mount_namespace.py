"""A mount namespace whose root is the caller's root, for programs that do not work in a chroot. The
kernel denies a user namespace to a process whose root is not the root of its mount namespace
(user_namespaces(7), EPERM), and pivot_root(2) needs a root that is a mount point. Nix builds use
the first, container engines the second, so neither works in a plain chroot (a rescue system, a
build root). Standard library only, and safe after fork.
"""

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

_CLONE_NEWNS = 0x00020000  # linux/sched.h
_CLONE_NEWUSER = 0x10000000
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18  # linux/mount.h
_MNT_DETACH = 2
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}  # system call numbers; libc has no wrapper


def is_needed() -> bool:
    """True for root inside a chroot: there the kernel denies a user namespace with EPERM."""
    if os.geteuid() != 0 or os.uname().machine not in _PIVOT_ROOT:
        return False
    child = os.fork()
    if child == 0:
        os._exit(0 if _libc().unshare(_CLONE_NEWUSER) == 0 else ctypes.get_errno())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1 and _is_chrooted()


def preexec_function() -> Callable[[], None] | None:
    """For `preexec_fn` of a program that needs it: `enter` inside a chroot, else None."""
    return enter if is_needed() else None


def enter() -> None:
    """Moves this process into a new mount namespace with its current root on top. Raises
    OSError.
    """
    libc = _libc()
    _checked(libc.unshare(_CLONE_NEWNS))
    root = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    namespace_fd = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    _checked(
        libc.setns(namespace_fd, _CLONE_NEWNS)
    )  # resets root and cwd to the namespace's own root
    os.fchdir(root)
    _checked(libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))
    _checked(libc.mount(b".", b".", None, _MS_BIND | _MS_REC, None))
    os.chdir("..")
    os.chdir(_name_in_parent(root))
    _checked(libc.syscall(_PIVOT_ROOT[os.uname().machine], b".", b"."))
    _checked(libc.umount2(b".", _MNT_DETACH))
    os.chroot(".")
    os.chdir("/")
    os.close(root)
    os.close(namespace_fd)


def _name_in_parent(directory_fd: int) -> str:
    """The directory's name in its parent, found by inode: /proc shows a path relative to the
    previous root.
    """
    target = os.fstat(directory_fd)
    with os.scandir(".") as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and os.path.samestat(
                target, Path(entry.name).stat()
            ):
                return entry.name  # by stat: a directory entry has the inode below a mount
    raise OSError(2, "the root has no name in its parent")


def _is_chrooted() -> bool:
    """True if the root of the mount namespace is not the root of this process, tested in
    a child.
    """
    child = os.fork()
    if child == 0:
        root_stat = Path("/").stat()
        namespace_fd = os.open("/proc/self/ns/mnt", os.O_RDONLY)
        if _libc().unshare(_CLONE_NEWNS) or _libc().setns(namespace_fd, _CLONE_NEWNS):
            os._exit(2)
        os._exit(1 if os.path.samestat(root_stat, Path("/").stat()) else 0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
