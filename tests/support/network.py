"""A private network for the calling process, so that tests that choose ports can run in parallel."""
import contextlib
import ctypes
import fcntl
import os
import pathlib
import socket
import struct
import tempfile

CLONE_NEWNET = 0x40000000  # From sched.h.
SIOCSIFFLAGS = 0x8914  # See netdevice(7).
IFF_UP = 1

libc = ctypes.CDLL(None, use_errno=True)


def checked(status, what):
    if status != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP))


@contextlib.contextmanager
def own_network():
    """As root, enters a network namespace with a loopback interface, which children of this thread inherit.
    Other users' tests wait for each other."""
    if os.geteuid() != 0:
        with open(pathlib.Path(tempfile.gettempdir(), f"carve-ports-{os.geteuid()}.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        return
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        checked(libc.unshare(CLONE_NEWNET), "unshare")
        loopback_up()
        yield
    finally:
        checked(libc.setns(before, CLONE_NEWNET), "setns")
        os.close(before)
