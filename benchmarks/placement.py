#!/usr/bin/env python3
"""How much of a cluster each placement policy uses, beside what the FGD paper published, and how fast it decides.

Needs openb's CSV files (cluster-trace-gpu-v2023, or data/csv of hkust-adsl/kubernetes-scheduler-simulator) in the folder
that CARVE_OPENB names; without it there are no figures. Seeds 42..51 as published, 52..61 for policies of our own. Takes about a minute on two cores.
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
SPEED = {"fgd": 150_000, "carve": 100_000, "lookahead": 10_000}
LOST = {"carve": 0.77, "fgd": None, "first-fit": None}


def figure(name, value, unit, goal, better, spread=None, peer=None):
    out = {"name": f"placement.{name}", "value": value, "unit": unit, "goal": goal, "better": better, "native": None, "spread": spread, "where": "replay"}
    return out | ({"peer": peer} if peer is not None else {})


def replay(folder, traces, policies, *options):
    command = [REPLAY, "--nodes", folder / "openb_node_list_gpu_node.csv", "--policy", ",".join(policies), "-o", "json", *options]
    for trace in traces:
        command += ["--trace", folder / f"openb_pod_list_{trace}.csv"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def main():
    if "CARVE_OPENB" not in os.environ:
        print("placement: set CARVE_OPENB to the folder with openb's CSV files", file=sys.stderr)
        return print("[]")
    folder = pathlib.Path(os.environ["CARVE_OPENB"])
    out = []
    for row in replay(folder, TRACES, ["first-fit", "best-fit", "fgd"], "--seeds", "42..51"):
        trace, policy = row["trace"], row["policy"]
        at = row["allocated_at"]["100"]
        if policy == "fgd":
            out.append(figure(f"openb.{trace}.fgd.100", at["mean"], "%", PUBLISHED[trace] - 0.25, "higher", at["sd"] / at["mean"], PUBLISHED[trace]))
        elif trace == "default":
            published, within = (94.40, 0.15) if policy == "first-fit" else (92.86, 0.25)
            out.append(figure(f"openb.{trace}.{policy}.off", abs(at["mean"] - published), "%", within, "lower"))
    fgd = {}
    for row in replay(folder, TRACES, ["fgd", "carve", "lookahead"], "--seeds", "52..61"):
        trace, policy = row["trace"], row["policy"]
        at = row["allocated_at"]["100"]
        if policy == "fgd":
            fgd[trace] = at["mean"]
            continue
        goal = LOOKAHEAD[trace] if policy == "lookahead" else 95.0 if trace == "gpuspec20" else fgd[trace] - 0.05
        out.append(figure(f"openb.{trace}.{policy}.100", at["mean"], "%", round(goal, 3), "higher", at["sd"] / at["mean"], fgd[trace]))
    for row in replay(folder, ["default"], list(LOST), "--arrivals", "churn", "--load", "0.95", "--seeds", "52..61"):
        goal = LOST[row["policy"]]
        out.append(figure(f"churn.{row['policy']}.lost", row["lost_percent"]["mean"], "%", goal, "lower"))
        out.append(figure(f"churn.{row['policy']}.lost.8", row["lost_percent_of"]["8"]["mean"], "%", goal and 7.6, "lower"))
    # One thread, so that a decision has a core for itself.
    for row in replay(folder, ["default"], list(SPEED), "--seeds", "42..44", "--jobs", "1"):
        out.append(figure(f"speed.{row['policy']}", row["decisions_per_second"], "1/s", SPEED[row["policy"]], "higher"))
        out.append(figure(f"bytes_per_node.{row['policy']}", row["bytes_per_node"], "B", 1024, "lower"))
    print(json.dumps(out))


if __name__ == "__main__":
    main()
