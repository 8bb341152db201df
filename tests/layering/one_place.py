"""Production, replay and tests use the same src/place: each of its files is compiled once into one archive,
which every program that places slices links.

  one_place.py BUILD_NINJA
"""
import re
import sys

PROGRAMS = ["bin/carved", "bin/carve-replay", "tests/place_test", "tests/place_engine_test", "tests/replay_test"]
ARCHIVE = "archives/libcarve_place.a"


def violations(text):
    edges = {}
    for line in text.replace("$\n", "").splitlines():
        if found := re.match(r"build ([^:|]+?)(?: \|[^:]*)?: (\S+) (.*)", line):
            edges[found[1].strip()] = found[2], found[3].split()
    compiled = {}
    for output, (rule, inputs) in edges.items():
        for source in inputs:
            if rule.startswith("CXX_COMPILER") and re.search(r"(^|/)src/place/[a-z_]+\.cc$", source) and not source.endswith("_test.cc"):
                compiled.setdefault(source, []).append(output)
    if not compiled:
        yield "no file of src/place is compiled"
    for source, outputs in compiled.items():
        if len(outputs) != 1 or "carve_place.dir" not in outputs[0]:
            yield f"{source} is compiled into {', '.join(outputs)}"
    for program in PROGRAMS:
        if program not in edges:
            yield f"{program} is not built"
        elif ARCHIVE not in edges[program][1]:
            yield f"{program} does not link {ARCHIVE}"


with open(sys.argv[1]) as file:
    found = list(violations(file.read()))
print("\n".join(found) or "all programs link one src/place")
sys.exit(1 if found else 0)
