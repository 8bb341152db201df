#!/usr/bin/env python3
"""The second check of the layers: every #include "..." under src/ must obey src/layers.txt.

Usage: includes.py SOURCE_DIR. Prints a line for each include that is not allowed, and then exits with status
1.
"""
import pathlib
import re
import sys


def read_rows(table):
    """Returns {folder: folders that it may use}."""
    rows = {}
    for line in table.read_text().splitlines():
        if line and not line.startswith("#"):
            folder, _, uses = line.partition(":")
            if folder.strip() in rows:
                sys.exit(f"{table}: {folder.strip()} has two rows")
            rows[folder.strip()] = uses.split()
    return rows


def row_of(path, rows):
    """Returns the longest row that is a prefix of the path, or None."""
    return max((row for row in rows if path.startswith(row + "/")), key=len, default=None)


def is_test(path):
    return path.endswith("_test.cc") or "/testing/" in path


def violations(source):
    rows = read_rows(source / "layers.txt")
    for file in sorted(source.rglob("*")):
        if file.suffix not in {".h", ".cc", ".S", ".inc"}:
            continue
        path = file.relative_to(source).as_posix()
        row = row_of(path, rows)
        if row is None:
            yield f"{file}: src/{path.rpartition('/')[0]} has no row in src/layers.txt"
            continue
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not found:
                continue
            target = found[1]
            if not (source / target).exists():
                yield f'{file}:{number}: "{target}" is not a path below src/'
            elif "/testing/" in target:
                # A test double replaces code of the folder around it. It may be used by tests of any part of
                # that folder, and by tests of folders that may use that folder.
                inside = path.startswith(target.partition("/testing/")[0] + "/")
                if not is_test(path) or not (inside or row_of(target, rows) in rows[row]):
                    yield f'{file}:{number}: src/{row} may not include "{target}"'
            elif row_of(target, rows) not in [row, *rows[row]]:
                yield f'{file}:{number}: src/{row} may not include "{target}"'


def main():
    wrong = list(violations(pathlib.Path(sys.argv[1])))
    print("\n".join(wrong) or "every include is allowed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
