"""The agent runs as root, so it must not link any part of the controller: no archive or object of these
folders may be in the inputs of bin/carved, directly or through another library. The controller itself must
link them, or the check would be ineffective.

  agent_links.py BUILD_NINJA
"""
import re
import sys

AGENT, CONTROLLER = "bin/carved", "bin/carve-controller"
FORBIDDEN = ("controller", "yaml", "objects", "engines", "dialects", "render", "workload", "bill")  # Folders of src/, including their subfolders.


def edges_of(text):
    """Returns {output: its inputs}, both explicit and implicit, without order-only inputs."""
    edges = {}
    for line in text.replace("$\n", "").splitlines():
        if found := re.match(r"build ([^:]+): \S+ (.*)", line):
            inputs = found[2].partition("||")[0].replace("|", " ").split()
            for output in found[1].replace("|", " ").split():
                edges[output] = inputs
    return edges


def linked(program, edges):
    """Returns all inputs of the program."""
    seen, left = set(), [program]
    while left:
        for made_from in edges.get(left.pop(), []):
            if made_from not in seen:
                seen.add(made_from)
                left.append(made_from)
    return seen


def folder_of(path):
    """Returns the forbidden folder that the archive or object belongs to, or None."""
    for folder in FORBIDDEN:
        if re.search(rf"(^|/)libcarve_{folder}(_[a-z]+)*\.a$|(^|/)src/{folder}/.*\.(o|cc)$", path):
            return folder
    return None


def violations(edges):
    for program in AGENT, CONTROLLER:
        if program not in edges:
            yield f"{program} is not built"
    for path in sorted(linked(AGENT, edges)):
        if folder := folder_of(path):
            yield f"{AGENT} links {path}: src/{folder} belongs to {CONTROLLER}"
    if "controller" not in {folder_of(path) for path in linked(CONTROLLER, edges)}:
        yield f"{CONTROLLER} links nothing of src/controller: this check does not see what a program links"


with open(sys.argv[1]) as file:
    wrong = list(violations(edges_of(file.read())))
print("\n".join(wrong) or f"{AGENT} links none of {', '.join(FORBIDDEN)}")
sys.exit(1 if wrong else 0)
