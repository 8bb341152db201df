#!/usr/bin/env python3
"""The second check of the layers: every #include "..." under src/ obeys src/layers.txt.

Usage: includes.py SOURCE_DIR. Exit status 1 and a line per include that points the wrong way.
"""
import pathlib
import re
import sys


def allowed_folders(table):
    rows = {}
    for line in table.read_text().splitlines():
        if line and not line.startswith("#"):
            folder, _, uses = line.partition(":")
            rows[folder.strip()] = uses.split()
    return rows


def violations(source):
    rows = allowed_folders(source / "layers.txt")
    for file in sorted(source.rglob("*")):
        if file.suffix not in {".h", ".cc", ".S", ".inc"}:
            continue
        folder = file.relative_to(source).parts[0]
        if folder not in rows:
            yield f"{file}: src/{folder} has no row in src/layers.txt"
            continue
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not found:
                continue
            target = found[1]
            if not (source / target).exists():
                yield f'{file}:{number}: "{target}" is not a path below src/'
            elif not any(target.startswith(use + "/") for use in rows[folder] + [folder]):
                yield f'{file}:{number}: src/{folder} may not include "{target}"'


def main():
    wrong = list(violations(pathlib.Path(sys.argv[1])))
    print("\n".join(wrong) or "every include points the right way")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
