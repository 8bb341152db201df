"""Kills parts of jobs at random moments and checks the result: a defined phase, no slice or process left, and
an invoice that is the sum over the usage records."""
import fractions
import json
import os
import pathlib
import signal
import time

from support.agent import until
from support.jobs import EXAMPLES
from support.over_unix import asked

SECOND = 1_000_000_000


def program_state(jobs, program):
    path = jobs.state / "programs" / program / "state.json"
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def kill_process(pid):
    if not pid:
        return False
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


class Killer:
    """Kills one victim: "agent", "controller", "POD" (its program) or "POD supervisor". Returns whether it
    was alive."""

    def __init__(self, jobs):
        self.jobs = jobs

    def kill(self, job, victim):
        if victim == "controller":
            self.jobs.restart()
            return True
        if victim == "agent":
            self.jobs.agent.process.kill()
            self.jobs.agent.process.wait()
            self.jobs.agent.start()
            return True
        pod, _, part = victim.partition(" ")
        state = program_state(self.jobs, f"{job}-{pod}")
        if state.get("ended_ns") or not state.get("program_pid"):
            return False
        return kill_process(state["supervisor_pid" if part == "supervisor" else "program_pid"])


def records(jobs, job):
    """Returns the usage records of the job's slices."""
    status, _, text = asked(jobs.agent.socket, "/v1/usage?after=0")
    assert status == 200, text
    return [r for r in json.loads(text)["records"] if r["slice"]["labels"].get("carve.dev/name") == job]


def hours(record):
    """Returns the exact GPU-hours of an ended record on one A10 under examples/tariff.yaml, in whole seconds,
    rounded up."""
    part, = record["slice"]["parts"]
    nanoseconds = record["to"]["monotonic_ns"] - record["from"]["monotonic_ns"]
    seconds = -(-nanoseconds // SECOND)
    ratio = max(fractions.Fraction(part["share_bp"], 10_000), fractions.Fraction(part["memory_bytes"], part["usable_bytes"]))
    exact = fractions.Fraction(seconds, 3600) * 10 * ratio * 1_000_000
    return fractions.Fraction(round(exact), 1_000_000)  # Rounded half to even.


def invoice_is_the_sum(jobs, names):
    """Checks that the invoice by job, status.gpuHours and the sum over the usage records agree for each
    job."""
    def closed():
        lines = json.loads(jobs.carve("bill", "--lines", "-o", "json"))["lines"]
        return lines and not any(line["open"] for line in lines) and {line["name"] for line in lines} >= wanted
    sums = {name: [hours(record) for record in records(jobs, name)] for name in names}
    wanted = {name for name, parts in sums.items() if parts}
    assert until(closed, 30, 0.2), jobs.log()
    items = {item["key"]: item for item in json.loads(jobs.carve("bill", "--by", "job", "-o", "json"))["items"]}
    for name in wanted:
        total = sum(sums[name])
        item = items[f"default/{name}"]
        assert fractions.Fraction(item["gpu_hours"]) == total and item["lines"] == len(sums[name]), (name, item, sums[name])
        assert until(lambda: fractions.Fraction(jobs.status(name).get("gpuHours") or "0") == total, 30, 0.2), (jobs.status(name), total)


def processes_of(job):
    """Returns the live processes of the job: (pid, command line)."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"CARVE_JOB={job}\0".encode() in (process / "environ").read_bytes() and os.readlink(process / "exe"):
                found.append((int(process.name), (process / "cmdline").read_text().replace("\0", " ")[:120]))
        except OSError:
            pass
    return found


def release_seconds(jobs, job, status, ready_at):
    """Returns how long the last slice of the job lived after the end of the last program, or after the killed
    program was restarted."""
    programs = [program_state(jobs, pod["program"]).get("ended_ns", 0) for pod in status["pods"]]
    ended = [record["to"]["utc_ns"] for record in records(jobs, job)]
    return max(0.0, (max(ended) - max([*programs, ready_at])) / SECOND) if ended else 0.0


def begin(jobs):
    jobs.apply((EXAMPLES / "tariff.yaml").read_text())


def run_kills(jobs, chance, count, submit, victims, longest, log):
    """Submits `count` jobs and kills one victim of each at a random moment. `victims` is {victim: phases that
    may follow}. Returns the seconds until the slices of each job were released."""
    killer, names, late = Killer(jobs), [], []
    for number in range(count):
        name = submit(number)
        names.append(name)
        victim = chance.choice(sorted(victims))
        if chance.random() < 0.5 and until(lambda: jobs.phase(name) not in ("Queued", "Starting"), 60, 0.01):
            pass  # Half of the kills happen after the start, the others at any time.
        time.sleep(chance.random() * longest)
        lived = killer.kill(name, victim)
        ready_at = time.time_ns()
        allowed = victims[victim] if lived else {"Succeeded"}
        status = jobs.becomes(name, "Succeeded", "Failed", "Lost", "Cancelled", seconds=240)
        assert status["phase"] in allowed, (number, victim, lived, status, jobs.log())
        jobs.all_slices_end()
        assert until(lambda: processes_of(name) == [], 30), (victim, processes_of(name))
        assert all(record["to"] for record in records(jobs, name))
        late.append(release_seconds(jobs, name, status, ready_at))
        killed = victim if lived else f"{victim} (ended before)"
        log(f"{number}: {name}: kill of {killed}: {status['phase']}, slices back after {late[-1]:.3f} s")
    invoice_is_the_sum(jobs, names)
    return late
