#!/usr/bin/env python3
"""Measures how much of a cluster each placement strategy uses, next to the figures of the FGD paper; how much
of that it loses when slices end; and how fast it decides.

The variable CARVE_OPENB names the folder with openb's CSV files (cluster-trace-gpu-v2023, or data/csv of
hkust-adsl/kubernetes-scheduler-simulator); without it there are no figures. `openb` uses the seeds of the
published table, 42..51; `holdout` and churn use 52..81, which were never used to choose parameters. Takes
about three minutes on two cores.
"""
import json
import os
import pathlib
import subprocess
import sys

REPLAY = pathlib.Path(__file__).resolve().parent.parent / "build/bin/carve-replay"
TRACES = ["default", "gpushare100", "multigpu30", "gpuspec20", "cpu100"]
PUBLISHED = {"default": 95.23, "gpushare100": 86.64, "multigpu30": 96.36, "gpuspec20": 94.66, "cpu100": 95.21}
LOOKAHEAD = {"default": 96.10, "gpuspec20": 95.95, "multigpu30": 97.0, "gpushare100": 87.6, "cpu100": 95.95}
SPEED = {"fgd": 150_000, "fgd-scarcity": 100_000, "lookahead": 10_000}
HOLDOUT = "52..81"
# Under churn at 95 % load (docs/decisions/0005): the capacity that fgd-scarcity loses, relative to what fgd
# loses.
CHURN = {"exponential": (0.85, []), "bounded": (0.6, ["--lifetimes", "trace", "--longest", "3600"])}


def figure(name, value, unit, goal, better, spread=None, peer=None):
    out = {"name": f"placement.{name}", "value": value, "unit": unit, "goal": goal, "better": better, "native": None, "spread": spread,
           "where": "replay"}
    return out | ({"peer": peer} if peer is not None else {})


def replay(folder, traces, strategies, *options):
    command = [REPLAY, "--nodes", folder / "openb_node_list_gpu_node.csv", "--strategy", ",".join(strategies), "-o", "json", "--quiet",
               *options]
    for trace in traces:
        command += ["--trace", folder / f"openb_pod_list_{trace}.csv"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def main():
    if "CARVE_OPENB" not in os.environ:
        print("placement: set CARVE_OPENB to the folder with openb's CSV files", file=sys.stderr)
        return print("[]")
    folder = pathlib.Path(os.environ["CARVE_OPENB"])
    out = []
    most_bytes = {}
    for seeds, kind in (("42..51", "openb"), (HOLDOUT, "holdout")):
        strategies = ["first-fit", "best-fit", "fgd", "fgd-scarcity"] if kind == "openb" else ["fgd", "fgd-scarcity", "lookahead"]
        fgd = {}
        for row in replay(folder, TRACES, strategies, "--seeds", seeds):
            trace, strategy = row["trace"], row["strategy"]
            at = row["allocated_at"]["100"]
            name, mean, sd = f"{kind}.{trace}.{strategy}", at["mean"], at["sd"] / at["mean"]
            most_bytes[strategy] = max(most_bytes.get(strategy, 0), row["bytes_per_node"])
            if strategy == "fgd":
                fgd[trace] = mean
                published = PUBLISHED[trace] if kind == "openb" else None
                out.append(figure(f"{name}.100", mean, "%", published and published - 0.25, "higher", sd, published))
            elif strategy == "fgd-scarcity":
                out.append(figure(f"{name}.100", mean, "%", 95.0 if trace == "gpuspec20" else None, "higher", sd, fgd[trace]))
                out.append(figure(f"{name}.below_fgd", max(0.0, round(fgd[trace] - mean, 3)), "%", 0.05, "lower"))
            elif strategy == "lookahead":
                out.append(figure(f"{name}.100", mean, "%", LOOKAHEAD[trace], "higher", sd, fgd[trace]))
            elif trace == "default":
                published, within = (94.40, 0.15) if strategy == "first-fit" else (92.86, 0.25)
                out.append(figure(f"{name}.off", round(abs(mean - published), 3), "%", within, "lower"))
    for lifetimes, (goal, options) in CHURN.items():
        rows = replay(folder, ["default"], ["fgd", "fgd-scarcity"], "--arrivals", "churn", "--load", "0.95", "--seeds", HOLDOUT, *options)
        lost = {row["strategy"]: (row["lost_percent"]["mean"], row["lost_percent_of"]["8"]["mean"]) for row in rows}
        fgd, ours = lost["fgd"], lost["fgd-scarcity"]
        for strategy, (of_all, of_eight) in lost.items():
            out.append(figure(f"churn.{lifetimes}.{strategy}.lost", of_all, "%", None, "lower"))
            out.append(figure(f"churn.{lifetimes}.{strategy}.lost.8", of_eight, "%", None, "lower"))
        out.append(figure(f"churn.{lifetimes}.of_fgd", round(ours[0] / fgd[0], 4), "ratio", goal, "lower"))
        out.append(figure(f"churn.{lifetimes}.of_fgd.8", round(ours[1] / fgd[1], 4), "ratio", 1, "lower"))
    # One thread, so that nothing else competes for its core.
    for row in replay(folder, ["default"], list(SPEED), "--seeds", "42..44", "--jobs", "1"):
        out.append(figure(f"speed.{row['strategy']}", row["decisions_per_second"], "1/s", SPEED[row["strategy"]], "higher"))
    # The trace with the most request classes, gpuspec20 with 387, gives the maximum.
    for strategy, most in most_bytes.items():
        out.append(figure(f"bytes_per_node.{strategy}", most, "B", 1024, "lower"))
    print(json.dumps(out))


if __name__ == "__main__":
    main()
