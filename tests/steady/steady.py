#!/usr/bin/env python3
"""Runs the tests of a stage, and repeats each failed test twice by itself (verdict.py has the rule).

    tests/steady/steady.py --run ID --stage NAME ctest BUILD [CTEST-ARGUMENT...]
    tests/steady/steady.py --run ID --stage NAME pytest PYTHON [PYTEST-ARGUMENT...]
    tests/steady/steady.py --run ID verdict

The first two exit with 0 if every failed test is unsteady. `verdict` prints the unsteady tests of the run and
their number. It exits with 1 if there are too many, or if one of them was unsteady in an earlier run.
Unsteady tests are recorded in build/unsteady.json, with their logs in build/logs/unsteady. When a test was
fixed, its lines must be removed from the record.

For a GoogleTest binary that ran to its end, each failed case is repeated; for any other entry of ctest, the
whole entry. A sanitizer's report stays a failure, because a race that shows once in a thousand runs is a
race.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from verdict import MAX_TESTS_TO_REPEAT, RUNS_ALONE, Result, judge

HERE = pathlib.Path(__file__).resolve().parent
SANITIZER_REPORT = re.compile(r"(ERROR|WARNING): \w+Sanitizer|runtime error:")
MAX_LOG_BYTES = 64 << 20  # Limit for one failed ctest entry; ctest cuts off the rest.


def failed_gtest_cases(output):
    """Returns the failed cases that GoogleTest lists at its end; empty if the binary did not get that far."""
    listed = output.rpartition("[  PASSED  ]")[2] if "[  PASSED  ]" in output else ""
    return re.findall(r"^\[  FAILED  \] ([^\s,.]+\.[^\s,]+)", listed, re.M)


def skip_reasons(log):
    """Returns the lines of ctest's log with the reasons why tests were skipped, each once."""
    reasons = re.findall(r": Skipped\n(.*)", log)
    return sorted({f"skipped: {reason}" for reason in reasons} | set(re.findall(r"^skipped:.*", log, re.M)))


class Ctest:
    """The entries of a build folder. A test is the name of an entry, followed by the case if GoogleTest named
    one."""

    def __init__(self, build, *arguments):
        self.build, self.arguments = pathlib.Path(build), arguments

    def run(self):
        """Runs all tests. Returns the exit status and {test: log} of the failed ones."""
        written = self.build / "Testing/Temporary"
        listed = written / "LastTestsFailed.log"
        listed.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            junit = pathlib.Path(folder, "junit.xml")
            status = subprocess.run(["ctest", "--test-dir", self.build, "--output-on-failure", "-j", "2", "--output-junit", junit,
                                     "--test-output-size-failed", str(MAX_LOG_BYTES), *self.arguments]).returncode
            cases = xml.etree.ElementTree.parse(junit).iter("testcase") if junit.exists() else []
            logs = {case.get("name"): case.findtext("system-out") or "" for case in cases}
        print("\n".join(skip_reasons((written / "LastTest.log").read_text(errors="replace"))), flush=True)
        failed = {}
        for line in listed.read_text().split() if listed.exists() else []:
            entry = line.partition(":")[2]
            log = logs.get(entry, "")
            failed |= {f"{entry} {case}".rstrip(): log for case in failed_gtest_cases(log) or [""]}
        return status, failed

    def run_alone(self, test):
        entry, _, case = test.partition(" ")
        return subprocess.run(["ctest", "--test-dir", self.build, "--output-on-failure", "-R", f"^{re.escape(entry)}$"],
                              env={**os.environ, **({"GTEST_FILTER": case} if case else {})}, capture_output=True, text=True,
                              errors="replace")


class Pytest:
    """The tests that a pytest command runs. A test is pytest's id."""

    def __init__(self, python, *arguments):
        self.command = [python, "-m", "pytest", "--rootdir", ".", "-q", "-p", "no:cacheprovider"]  # Ids are relative to the root.
        self.arguments = arguments

    def run(self):
        with tempfile.TemporaryDirectory() as folder:
            found = pathlib.Path(folder, "failed")
            path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
            status = subprocess.run([*self.command, "-p", "failures", *self.arguments],
                                    env={**os.environ, "PYTHONPATH": path, "CARVE_FAILED_TESTS": str(found)}).returncode
            reports = [json.loads(line) for line in found.read_text().splitlines()] if found.exists() else []
        failed = {}
        for report in reports:  # A test may fail in its body and in its teardown.
            failed[report["test"]] = failed.get(report["test"], "") + report["log"] + "\n"
        return status, failed if status == 1 else {}  # Any other status means that pytest itself failed.

    def run_alone(self, test):
        return subprocess.run([*self.command, test], capture_output=True, text=True, errors="replace")


def repeated(stage, suite, test, log):
    """Repeats a failed test by itself until it fails or has passed twice."""
    passed = []
    if SANITIZER_REPORT.search(log):
        print(f"not run again, because a sanitizer reported: {test}", flush=True)
        return Result(stage, test)
    while len(passed) < RUNS_ALONE and all(passed):
        done = suite.run_alone(test)
        passed.append(done.returncode == 0)
        if not passed[-1]:
            print(f"{done.stdout}{done.stderr}\nfailed again alone: {test}", flush=True)
    return Result(stage, test, tuple(passed))


def run_stage(o, suite):
    status, failed = suite.run()
    if status == 0:
        return 0
    if not failed or len(failed) > MAX_TESTS_TO_REPEAT:
        print(f"{len(failed)} failed tests, none of them run again", flush=True)
        return 1
    verdict = judge([repeated(o.stage, suite, test, log) for test, log in failed.items()])
    for result in verdict.unsteady:
        kept = o.build / "logs/unsteady" / re.sub(r"[^\w.-]+", "_", f"{o.run}-{o.stage}-{result.test}")
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(failed[result.test])
        write_record(o, read_record(o) + [{"run": o.run, "stage": o.stage, "test": result.test, "log": str(kept)}])
        print(f"unsteady: {result.test} failed, then passed {RUNS_ALONE} times alone; {kept}", flush=True)
    return 1 if verdict.failed else 0


def read_record(o):
    path = o.build / "unsteady.json"
    return json.loads(path.read_text()) if path.exists() else []


def write_record(o, entries):
    (o.build / "unsteady.json").write_text("[\n" + ",\n".join(json.dumps(e) for e in entries) + "\n]\n")


def say_verdict(o):
    """Prints the unsteady tests of the run, whether they fail it, and their number."""
    record = read_record(o)
    now = [e for e in record if e["run"] == o.run]
    verdict = judge([Result(e["stage"], e["test"], (True,) * RUNS_ALONE) for e in now], [e["test"] for e in record if e["run"] != o.run])
    for entry in now:
        print(f"unsteady: {entry['stage']}: {entry['test']} ({entry['log']})")
    for reason in verdict.reasons:
        print(f"FAILED: {reason}")
    if verdict.reasons:
        print(f"Correct the tests, then remove their lines from {o.build / 'unsteady.json'}.")
    print(f"{len(now)} unsteady")
    return 0 if verdict.passes else 1


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--run", required=True, help="name of this run of ./test, different from every earlier one")
    words.add_argument("--stage", help="name of the stage, for the record and the log's name")
    words.add_argument("--build", type=pathlib.Path, default="build", help="folder of the record and the logs (build)")
    words.add_argument("what", choices=["ctest", "pytest", "verdict"])
    words.add_argument("arguments", nargs=argparse.REMAINDER)
    o = words.parse_args()
    if o.what == "verdict":
        return say_verdict(o)
    return run_stage(o, {"ctest": Ctest, "pytest": Pytest}[o.what](*o.arguments))


if __name__ == "__main__":
    sys.exit(main())
