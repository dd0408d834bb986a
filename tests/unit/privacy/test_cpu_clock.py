"""The time of a search is the CPU time of its thread, without garbage collections."""

import gc
import threading
import time

from agentbox.policy.redaction.cpu_clock import thread_seconds


def test_a_collection_is_not_counted():
    """A large heap makes a full collection take longer than a search may."""
    heap = [[index] for index in range(1_000_000)]
    started, cpu = thread_seconds(), time.thread_time()
    gc.collect()
    counted, used = thread_seconds() - started, time.thread_time() - cpu
    assert len(heap) == 1_000_000
    assert used > 0.02
    assert counted < used / 10


def test_work_is_counted():
    """Another thread's collections are no part of it."""
    started, cpu = thread_seconds(), time.thread_time()
    other = threading.Thread(target=gc.collect)
    other.start()
    other.join()
    sum(range(2_000_000))
    used = time.thread_time() - cpu
    assert abs((thread_seconds() - started) - used) < 0.01
