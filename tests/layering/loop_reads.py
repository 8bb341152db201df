"""No loop waits for a guest or a user. What another process can make slow or endless is done in one place for each kind, and
that place is a child process or a thread (docs/decisions/0025-nothing-slow-on-a-loop.md). A row is a kind: what its code looks
like, and the only files of the agent, the controller and the node's programs that may have it.

  loop_reads.py SRC
"""
import pathlib
import re
import sys

ROWS = [
    # Pages of another process's memory, and the lock of its memory map.
    (r'"[^"\n]*/proc/(?!self)[^"\n]*/(cmdline|environ|maps|smaps|mem|exe|map_files|fd|fdinfo)\b', {"node/inspect/inspection.cc"}),
    (r'folder \+ "/(cmdline|environ|maps|smaps|mem|exe|map_files|fd|fdinfo)\b', {"node/inspect/inspection.cc"}),
    (r'"\{\}/(cmdline|environ|maps|smaps|mem|exe|map_files|fd|fdinfo)\b', {"node/inspect/inspection.cc"}),
    # Any user can make the kernel's list of locks long.
    (r'"/proc/locks', {"node/slice/shared_blocks.cc"}),
    # NVML may not answer. Calls on a running agent are those of the sampler.
    (r"\bNvml::open\(", {"node/steps.cc", "node/devices/nvml_library.cc"}),
    (r"\bnvml\.sample\(", {"node/devices/sampler.cc"}),
]
# Programs that serve nobody: they may wait.
APART = ("cli", "client", "sim", "guest", "load", "replay", "kubectl")


def violations(src):
    seen = {pattern: set() for pattern, _ in ROWS}
    for path in sorted([*src.rglob("*.cc"), *src.rglob("*.h")]):
        name = str(path.relative_to(src))
        if name.split("/")[0] in APART or name.endswith("_test.cc") or "/testing/" in name:
            continue
        text = re.sub(r"//.*", "", path.read_text())
        for pattern, allowed in ROWS:
            for found in re.finditer(pattern, text):
                seen[pattern].add(name)
                if name not in allowed:
                    yield f"src/{name}:{text[:found.start()].count(chr(10)) + 1}: {found[0]}: only in {', '.join(sorted(allowed))}"
    if not all(seen[pattern] for pattern, allowed in ROWS if allowed == {"node/slice/shared_blocks.cc"}):
        yield "src/node/slice/shared_blocks.cc reads no list of locks: this check does not see what it looks for"


found = list(violations(pathlib.Path(sys.argv[1])))
print("\n".join(found) or "nothing that a guest or a user can delay is read on a loop")
sys.exit(1 if found else 0)
