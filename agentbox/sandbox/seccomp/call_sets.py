"""System calls that the filter of an agent does not simply allow, by the reason."""

from typing import Final

# Access to other processes, bypasses of the rules on paths, rarely used parts of the kernel, and
# effects that outlive the agent.
REFUSED: Final = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp"),
    *("bpf", "perf_event_open", "userfaultfd", "unshare", "setns", "fanotify_init"),
    *(
        "mount",
        "umount2",
        "pivot_root",
        "chroot",
        "move_mount",
        "open_tree",
        "fsopen",
        "fsconfig",
        "fsmount",
        "fspick",
    ),
    *(
        "mount_setattr",
        "swapon",
        "swapoff",
        "quotactl",
        "quotactl_fd",
        "name_to_handle_at",
        "open_by_handle_at",
    ),
    *(
        "init_module",
        "finit_module",
        "delete_module",
        "kexec_load",
        "kexec_file_load",
        "reboot",
        "acct",
        "syslog",
    ),
    *("shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semtimedop", "semctl"),
    *("msgget", "msgsnd", "msgrcv", "msgctl", "add_key", "request_key", "keyctl"),
    *("mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr"),
    *(
        "sethostname",
        "setdomainname",
        "settimeofday",
        "clock_settime",
        "clock_adjtime",
        "adjtimex",
    ),  # allowed for root
    *(
        "modify_ldt",
        "iopl",
        "ioperm",
        "vhangup",
        "migrate_pages",
        "move_pages",
        "sched_setaffinity",
    ),
)
# Refused with ENOSYS: libraries fall back to plain reads and writes, and to files; this memory
# belongs to no process. `io_setup` has one limit for the whole host.
UNKNOWN: Final = (
    *(
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_register",
        "memfd_create",
        "memfd_secret",
        "io_setup",
    ),
)
# Required values of arguments: the thread id 0, which is the caller, and PRIO_PROCESS or
# IOPRIO_WHO_PROCESS as its kind (linux/resource.h, linux/ioprio.h); with another kind 0 means all
# processes of the user.
ON_ONESELF: Final = {
    "prlimit64": {0: 0},
    "setpriority": {0: 0, 1: 0},
    "ioprio_set": {0: 1, 1: 0},
    "sched_setscheduler": {0: 0},
    "sched_setparam": {0: 0},
    "sched_setattr": {0: 0},
}
# A pipe or socket buffer that refers to a page keeps the whole allocation, up to 2 MiB per counted
# byte: answered as for descriptors without support, and programs copy.
BY_REFERENCE: Final = ("splice", "tee", "vmsplice", "sendfile")
SENDING: Final = {"sendto": 3, "sendmsg": 2, "sendmmsg": 3}  # index of the flags
NETWORK_CALLS: Final = (
    "socket",
    "connect",
    "bind",
    "listen",
)  # calls that the reaper performs for the agent
# By path, and by descriptor, for which a read-only one suffices. A call without a number does not
# exist on that architecture.
OF_A_PATH: Final = (
    *(
        "chmod",
        "fchmodat",
        "fchmodat2",
        "utime",
        "utimes",
        "chown",
        "lchown",
        "fchownat",
        "setxattr",
        "lsetxattr",
    ),
    *("removexattr", "lremovexattr", "setxattrat", "removexattrat", "file_setattr"),
    *("fchmod", "fchown", "utimensat", "futimesat", "fsetxattr", "fremovexattr"),
)
FORK_CALLS: Final = ("fork", "vfork")  # and `clone`
INOTIFY_CALLS: Final = (
    "inotify_init",
    "inotify_init1",
)  # unread events are memory of no process
# Landlock has no hook for it: shows names in protected directories
ADD_WATCH: Final = "inotify_add_watch"
EPOLL_CALLS: Final = ("epoll_create", "epoll_create1")  # and EPOLL_CTL_ADD
LANDLOCK_CALLS: Final = ("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self")
