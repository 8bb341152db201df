"""Restricts calls through which one user could harm another to the files that handle this safely. Each row
has the pattern of such a call, the decision record that explains it, and the files that may contain it.

  guarded_calls.py SRC
"""
import pathlib
import re
import sys

PROCESS_FILES = "(cmdline|environ|maps|smaps|mem|exe|map_files)"  # The links in fd can be read without waiting.
SLOW = "decision 0025: another process can make it slow"
SERVER = "decision 0023: a client checks who serves a socket before it sends anything"
CALLER = "decision 0023: a caller is identified once, by a pidfd that is kept"
ROWS = [
    # Files that need pages of another process's memory or the lock of its memory map.
    (rf'"[^"\n]*/proc/(?!self)[^"\n]*/{PROCESS_FILES}\b', SLOW, {"node/inspect/inspection.cc"}),
    (rf'folder \+ "/{PROCESS_FILES}\b', SLOW, {"node/inspect/inspection.cc"}),
    (rf'"\{{\}}/{PROCESS_FILES}\b', SLOW, {"node/inspect/inspection.cc"}),
    # Any user can make the kernel's list of locks long.
    (r'"/proc/locks', SLOW, {"os/lock_list.cc"}),
    (r"\bos::read_lock_list\b", SLOW, {"node/slice/shared_blocks.h", "node/claims.cc"}),
    # NVML may not respond. On a running agent only the sampler calls it.
    (r"\bNvml::open\(", SLOW, {"node/steps.cc", "node/devices/nvml_library.cc"}),
    (r"\bnvml\.sample\(", SLOW, {"node/devices/sampler.cc"}),
    # Connections to servers: the clients' own check, the fd store (whose folder belongs to the agent), the
    # runtime's socket (which root names), the look-up of callers (which also checks), and the service
    # manager.
    (r"\bos::connect_to\(|(?<![_\w.>:])connect\([a-z_.()]*(fd|socket|get\(\))", SERVER,
     {"os/socket.h", "os/socket.cc", "os/service_watchdog.cc", "client/server_socket.cc", "node/pages/fd_store.cc",
      "controller/runtime/runtime_socket.cc", "controller/runtime/prober.cc", "controller/kept_connection.cc",
      "guest/process/attach_request.cc"}),
    # Identification of callers.
    (r"\bSO_PEERCRED\b|\bSO_PEERPIDFD\b", CALLER, {"os/socket.cc", "os/socket.h", "os/server_identity.cc", "os/server_identity.h",
                                                   "guest/process/attach_request.cc", "os/tcp.cc"}),
]
# Each pattern must find this file, or the check does not work.
MUST_FIND = {r'"/proc/locks': "os/lock_list.cc"}
# Programs without a server. They may wait, and they connect to the socket that their user names.
APART = ("cli", "sim", "load", "replay", "kubectl")


def violations(src):
    seen = {pattern: set() for pattern, _, _ in ROWS}
    for path in sorted([*src.rglob("*.cc"), *src.rglob("*.h")]):
        name = str(path.relative_to(src))
        if name.split("/")[0] in APART or name.endswith("_test.cc") or "/testing/" in name:
            continue
        text = re.sub(r"//.*", "", path.read_text())
        for pattern, why, allowed in ROWS:
            for found in re.finditer(pattern, text):
                if why == SLOW and name.startswith("guest/"):
                    continue  # The library waits only for its own process.
                seen[pattern].add(name)
                if name not in allowed:
                    line = text[:found.start()].count("\n") + 1
                    yield f"src/{name}:{line}: {found[0]}: only in {', '.join(sorted(allowed))} ({why})"
    for pattern, name in MUST_FIND.items():
        if name not in seen[pattern]:
            yield f"src/{name} does not match {pattern}: this check does not see what it looks for"


found = list(violations(pathlib.Path(sys.argv[1])))
print("\n".join(found) or "every guarded call is in its place")
sys.exit(1 if found else 0)
