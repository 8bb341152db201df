"""Helpers shared by the benchmarks: figures from repeated measurements. The agent is tests/support/agent.py,
which ./bench puts on the path."""
import pathlib
import statistics
import time


def figure(name, values, unit, goal, better="lower", native=None, where="simulated", why=None):
    middle = statistics.median(values)
    spread = (max(values) - min(values)) / middle if len(values) > 1 and middle else None
    return {"name": name, "value": round(middle, 4), "unit": unit, "goal": goal, "better": better,
            "native": None if native is None else round(statistics.median(native), 4), "spread": spread, "where": where, **({"why": why} if why else {})}


def cpu_seconds(process, thread=""):
    """Returns the CPU seconds of the process's threads whose names begin with `thread`, from schedstat
    (proc(5)), which counts nanoseconds; stat counts 10 ms."""
    tasks = pathlib.Path(f"/proc/{process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks
               if (task / "comm").read_text().startswith(thread)) / 1e9


def seconds_of(act):
    start = time.perf_counter()
    act()
    return time.perf_counter() - start
