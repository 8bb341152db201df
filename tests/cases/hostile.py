"""Attacks that a user's root could make from inside a slice, in one program without the guest library.

hostile.py SOCKET WHAT...     prints one line per attempt: "ok NAME" (it failed as it should) or "HARM NAME:
why"
"""
import array
import ctypes
import errno
import mmap
import os
import random
import socket
import struct
import sys
import time

MAGIC, LAYOUT = 0x41565243, 7
PROCESSES, PROCESS = 4096, 8192  # Offset in the report, and size: lanes, then their spare bytes.
WORK, THREADS = 11608064, 4096  # Offset of the work pages, and of a process's threads in its page.
api, what = sys.argv[1], sys.argv[2:]
libc = ctypes.CDLL(None, use_errno=True)


def say(name, good, why=""):
    print(f"ok {name}" if good else f"HARM {name}: {why}", flush=True)


def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(5)
    s.connect(api + ".attach")
    return s


def attach(image=1, layout=LAYOUT):
    s = connect()
    s.send(struct.pack("<IIIIQ5Q", MAGIC, layout, 64, 1, image, 0, 0, 0, 0, 0))
    fds = array.array("i")
    data, ancillary, _, _ = s.recvmsg(256, socket.CMSG_SPACE(8 * 4))
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(payload[: len(payload) - len(payload) % 4])
    status, slot, generation, control, report = struct.unpack_from("<IIIQQ", data, 12)
    return status, slot, list(fds), control, report, data[40:].split(b"\0")[0].decode()


def refused(name, attempt):
    try:
        attempt()
    except (OSError, ValueError) as e:
        return say(name, True, str(e))
    say(name, False, "it worked")


def pages():
    """Reopens, remaps, truncates and changes the mode of read-only pages; resizes writable pages."""
    status, _, fds, _, _, _ = attach()
    assert status == 0 and len(fds) == 3
    for name, fd in (("control", fds[0]), ("heartbeat", fds[2])):
        path = f"/proc/self/fd/{fd}"
        refused(f"{name} reopened writable", lambda: os.open(path, os.O_RDWR))
        refused(f"{name} reopened to be truncated", lambda: os.open(path, os.O_WRONLY | os.O_TRUNC))
        refused(f"{name} truncated", lambda: os.truncate(path, 0))
        refused(f"{name} ftruncated", lambda: os.ftruncate(fd, 0))
        refused(f"{name} mapped writable", lambda: mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE))
        refused(f"{name} made writable by fchmod", lambda: os.fchmod(fd, 0o666))
        refused(f"{name} written", lambda: os.pwrite(fd, b"x", 0))
        page = mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
        at = libc.mmap(None, 4096, 1, 1, fd, 0)
        libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        say(f"{name} mprotected", libc.mprotect(at, 4096, 3) != 0)
        del page
    refused("report shrunk", lambda: os.ftruncate(fds[1], 0))
    refused("report grown", lambda: os.ftruncate(fds[1], 1 << 30))


def mounts():
    """Mounts the page again without its read-only flag, with the capabilities of a container.

    (A process with CAP_SYS_ADMIN on the machine itself could; such a process has the agent's rights and could
    stop the agent.)
    """
    _, _, fds, _, _, _ = attach()
    libc.syscall.restype = ctypes.c_long
    for name, fd in (("control", fds[0]), ("heartbeat", fds[2])):
        clone = libc.syscall(428, fd, b"", 0x1000 | 1)  # open_tree(AT_EMPTY_PATH | OPEN_TREE_CLONE)
        say(f"{name} through a clone of its mount", clone < 0 and ctypes.get_errno() == errno.EPERM, clone)
        attributes = struct.pack("<QQQQ", 0, 1, 0, 0)  # Clears MOUNT_ATTR_RDONLY.
        done = libc.syscall(442, fd, b"", 0x1000, attributes, len(attributes))
        say(f"{name} after mount_setattr", done < 0, done)


def shedding():
    """Reports another program's identity to drop its own charges."""
    status, slot, fds, _, report, _ = attach(image=1)
    page = mmap.mmap(fds[1], report)
    lane = PROCESSES + slot * PROCESS
    struct.pack_into("<QQQQQQ", page, lane, 1, 1, 0, 0, 0, 1 << 29)  # announced = seen = 1; change[1] = {0, 512 MiB}
    struct.pack_into("<QQ", page, 64, 1 << 29, 0)
    assert attach(image=2)[0] == 0
    (used,) = struct.unpack_from("<Q", page, 64)
    say("charges shed by a claimed exec", used == 1 << 29, f"{used} bytes left")


def reclaim():
    """Measures the time from a process's death until its bytes are free again; the median of 20."""
    _, _, fds, _, report, _ = attach()
    page = mmap.mmap(fds[1], report)
    times = []
    for i in range(20):
        ready, go = os.pipe()
        child = os.fork()
        if child == 0:
            _, slot, _, _, _, _ = attach(image=100 + i)
            lane = PROCESSES + slot * PROCESS
            struct.pack_into("<QQQQQQ", page, lane, 1, 1, 0, 0, 0, 1 << 20)
            struct.pack_into("<QQ", page, 64, 1 << 20, 0)
            os.write(go, b"x")
            time.sleep(60)
        os.read(ready, 1)
        begin = time.monotonic()
        os.kill(child, 9)
        while struct.unpack_from("<Q", page, 64)[0] != 0 and time.monotonic() - begin < 5:
            time.sleep(0.0001)
        times.append(time.monotonic() - begin)
        os.waitpid(child, 0)
    median = sorted(times)[10] * 1000
    say(f"reclaimed {median:.2f} ms after death, at worst {max(times) * 1000:.2f} ms", median < 5 and max(times) < 1)


def degrade():
    """Reports three failed assumptions of the guest library, as ensure() does, and waits."""
    _, _, fds, _, report, _ = attach()
    struct.pack_into("<I", mmap.mmap(fds[1], report), 12, 3)
    say("reported", True)
    time.sleep(600)


def scribble():
    """Writes random bytes over the report page for a second and then ends, so that the agent cleans up."""
    _, _, fds, _, report, _ = attach()
    page = mmap.mmap(fds[1], report)
    dice = random.Random(5)
    for _ in range(20000):
        at = dice.choice((0, 64, 1088, 2176, PROCESSES, PROCESSES + 4096)) + dice.randrange(0, 2048)
        page[at : at + 8] = dice.randbytes(8)
    for child in range(8):
        if os.fork() == 0:
            attach(image=child + 10)
            own = PROCESSES + PROCESS * (1 + child)
            page[own : own + PROCESS] = dice.randbytes(PROCESS)
            os._exit(0)
    for _ in range(8):
        os.wait()
    say("scribbled", True)


def false_work():
    """Reports work for 600 s without launching any: a wait since the beginning, kernels of an hour that never
    complete, and constant busy time."""
    _, slot, fds, _, report, _ = attach()
    page = mmap.mmap(fds[1], report)
    own = WORK + slot * PROCESS
    struct.pack_into("<QQI", page, own, 1 << 50, 0, 1)  # A stream of device 0: fenced, completed.
    struct.pack_into("<QQQQQQII", page, own + THREADS, 1, 1, 3, 1, 0, (1 << 64) - 1, 1, 0)  # busy since 1 ns; waits since 1 ns
    struct.pack_into("<II", page, own + 2048, 1, 1)
    say("false work reported", True)
    for n in range(6000):
        struct.pack_into("<Q", page, own + THREADS, n)
        time.sleep(0.1)


def messages():
    """Sends messages that are not requests."""
    dice = random.Random(6)
    for size in (0, 1, 15, 63, 64, 65, 255, 4096, 5000, 60000):
        s = connect()
        try:
            s.send(dice.randbytes(size))
            s.shutdown(socket.SHUT_WR)
            answer = s.recv(256)
        except (BrokenPipeError, ConnectionResetError):
            answer = b""
        say(f"{size} random bytes", answer == b"", f"answered {answer[:20]}")
    idle = [connect() for _ in range(100)]
    say("100 idle connections", attach(image=3)[0] == 0)
    for s in idle:
        s.close()
    say("a wrong layout", attach(layout=9)[0] == 2)
    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(4)]
    s = connect()
    s.sendmsg([struct.pack("<IIIIQ5Q", MAGIC, LAYOUT, 64, 1, 4, 0, 0, 0, 0, 0)],
              [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
    say("descriptors sent along", len(s.recv(256)) in (0, 256))


def control():
    """Calls the API over every path to it, which must be rejected for every uid."""
    for method, path, body in (("GET", "/v1/slices", ""), ("GET", "/v1/version", ""), ("DELETE", "/v1/slices/other", ""),
                               ("POST", "/v1/slices", '{"memory_bytes":1073741824}'), ("POST", "/v1/slices/other/enter", "{}"),
                               ("POST", "/v1/slices/other/container", '{"pid":%d}' % os.getpid())):
        s = socket.socket(socket.AF_UNIX)
        s.connect(api)
        s.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        answer = b""
        while part := s.recv(65536):
            answer += part
        say(f"{method} {path}", answer.startswith(b"HTTP/1.1 403") and b"carve:called-from-slice" in answer, answer[:60])
        if os.fork() == 0:  # Also from a child that left its session and its parent.
            os.setsid()
            if os.fork():
                os._exit(0)
            s = socket.socket(socket.AF_UNIX)
            s.connect(api)
            s.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            answer = s.recv(65536)
            say(f"{method} {path} from a runaway", answer.startswith(b"HTTP/1.1 403"), answer[:60])
            os._exit(0)
        os.wait()


def answer_of(s, method, path, body):
    s.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    return s.recv(65536)


def heirs():
    """Sends requests over the connection of a parent that has ended and whose pid is free."""
    ended, of_the_heirs = os.pipe()
    for method, path, body in (("GET", "/v1/slices", ""), ("PATCH", "/v1/slices/bad", '{"memory_bytes":17179869184}'),
                               ("DELETE", "/v1/slices/other", ""), ("POST", "/v1/slices/bad/enter", "{}")):
        parent_is_gone, of_the_grandparent = os.pipe()
        parent = os.fork()
        if parent == 0:
            s = socket.socket(socket.AF_UNIX)
            s.connect(api)
            answer_of(s, "GET", "/v1/version", "")  # The agent has identified this process.
            if os.fork() == 0:
                os.close(of_the_grandparent)
                os.read(parent_is_gone, 1)
                answer = answer_of(s, method, path, body)
                say(f"{method} {path} by an heir", answer.startswith((b"HTTP/1.1 401", b"HTTP/1.1 403")), answer[:60])
            os._exit(0)
        os.waitpid(parent, 0)
        os.close(of_the_grandparent)
        os.close(parent_is_gone)
    os.close(of_the_heirs)
    os.read(ended, 1)  # Waits until the last heir has ended.


for name in what:
    globals()[name]()
