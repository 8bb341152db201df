#!/usr/bin/env python3
"""Runs the benchmarks (each prints a JSON list of figures), writes build/bench.json and prints a table.

A figure: {name, value, unit, goal, better: "lower"|"higher", native, spread, where}. `native` is the same
figure without Carve, measured alternately in the same run; `peer`, if given, is another product's. `spread`
is (max - min) / median of the repeats; `why`, if given, is printed if the goal is missed. The machine itself
(bench_host) is measured in every run: how late woken threads and timers are, and the sizes of its caches.
Usage: run.py [NAME...] selects the figures whose names begin with NAME. If the part of NAME before the first
dot is the name of a benchmark, only that benchmark runs.
"""
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent / "build"


def programs():
    yield from sorted((BUILD / "bin").glob("bench_*"))
    yield from sorted(p for p in HERE.glob("*.py") if p.name not in ("run.py", "measure.py"))


def figures(program):
    command = [sys.executable, program] if program.suffix == ".py" else [program]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"bench: {program.name} failed with status {done.returncode}")
    return json.loads(done.stdout)


def shown(value):
    return "-" if value is None else f"{value:.5g}" if isinstance(value, float) else str(value)


def missed(f):
    return f["goal"] is not None and f["value"] != f["goal"] and (f["value"] < f["goal"]) != (f["better"] == "lower")


def table(rows):
    heading = ["NAME", "VALUE", "UNIT", "NATIVE", "SPREAD", "GOAL", "MET", "WHERE", "PEER"]
    if not any("peer" in f for f in rows):
        heading.pop()
    lines = [heading]
    for f in rows:
        goal = f["goal"]
        met = "-" if goal is None else "NO" if missed(f) else "yes"
        sign = "<= " if f["better"] == "lower" else ">= "
        lines.append([f["name"], shown(f["value"]), f["unit"], shown(f["native"]), "-" if f["spread"] is None else f"{f['spread']:.0%}",
                      "-" if goal is None else sign + shown(goal), met, f["where"], shown(f.get("peer"))])
    widths = [max(len(line[i]) for line in lines) for i in range(len(heading))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths)).rstrip() for line in lines)


def misses(rows):
    with_goal = [f for f in rows if f["goal"] is not None]
    out = [f"{sum(map(missed, with_goal))} of {len(with_goal)} goals missed"]
    for f in filter(missed, with_goal):
        out.append(f"  {f['name']}: by {shown(abs(f['value'] - f['goal']))} {f['unit']}" + (f" ({f['why']})" if f.get("why") else ""))
    return "\n".join(out)


def main():
    wanted = sys.argv[1:]
    rows = []
    wanted += ["host."] if wanted else []
    chosen = [p for p in programs() if p.stem.removeprefix("bench_") in {w.split(".")[0] for w in wanted}]
    chosen = chosen if len(chosen) > 1 else []  # A name that matches no benchmark is searched in all of them.
    for program in chosen or programs():
        print(f"measuring: {program.stem}", file=sys.stderr)
        rows += figures(program)
    rows = [f for f in rows if not wanted or any(f["name"].startswith(w) for w in wanted)]
    (BUILD / "bench.json").write_text(json.dumps(rows, indent=1) + "\n")
    print(table(rows))
    print(misses(rows))


if __name__ == "__main__":
    main()
