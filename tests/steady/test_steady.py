"""Tests how ./test handles tests that fail now and then: first the rule as a table, then the tool with tests
that fail on their first runs."""
import json
import pathlib
import subprocess
import sys

import pytest

from steady import failed_gtest_cases, skip_reasons
from verdict import Result, judge

HERE = pathlib.Path(__file__).resolve().parent
STEADY, UNSTEADY, BROKEN, NEVER_REPEATED = (False,), (True, True), (True, False), ()


def results(**tests):
    return [Result("units", name, alone) for name, alone in tests.items()]


@pytest.mark.parametrize("tests, earlier, passes, unsteady, failed", [
    ({}, [], True, "", ""),
    ({"a": UNSTEADY}, [], True, "a", ""),
    ({"a": UNSTEADY, "b": UNSTEADY}, [], True, "ab", ""),
    ({"a": UNSTEADY, "b": UNSTEADY, "c": UNSTEADY}, [], False, "abc", ""),
    ({"a": UNSTEADY}, ["a"], False, "a", ""),
    ({"a": UNSTEADY}, ["b", "c"], True, "a", ""),
    ({}, ["a", "b", "c"], True, "", ""),
    ({"a": STEADY}, [], False, "", "a"),
    ({"a": BROKEN}, [], False, "", "a"),
    ({"a": NEVER_REPEATED}, [], False, "", "a"),
    ({"a": (True,)}, [], False, "", "a"),
    ({"a": UNSTEADY, "b": BROKEN}, [], False, "a", "b"),
])
def test_the_rule_decides_each_row_of_the_table(tests, earlier, passes, unsteady, failed):
    verdict = judge(results(**tests), earlier)
    assert verdict.passes == passes
    assert "".join(r.test for r in verdict.unsteady) == unsteady
    assert "".join(r.test for r in verdict.failed) == failed


def test_a_reason_names_the_test_and_the_limit():
    assert judge(results(a=UNSTEADY), ["a"]).reasons == ["a: unsteady in an earlier run too"]
    assert judge(results(a=UNSTEADY, b=UNSTEADY, c=UNSTEADY)).reasons == ["3 unsteady tests in one run; at most 2 pass"]


GTEST_END = """[ RUN      ] Streams.waits
[  FAILED  ] Streams.waits (3 ms)
[==========] 3 tests from 2 test suites ran. (12 ms total)
[  PASSED  ] 1 test.
[  FAILED  ] 2 tests, listed below:
[  FAILED  ] Streams.waits
[  FAILED  ] All/Copies.arrive/2, where GetParam() = 4 bytes

 2 FAILED TESTS
"""


def test_failed_cases_are_read_from_the_end_of_a_binarys_output():
    assert failed_gtest_cases(GTEST_END) == ["Streams.waits", "All/Copies.arrive/2"]
    assert failed_gtest_cases(GTEST_END[:GTEST_END.index("[  PASSED  ]")]) == []
    assert failed_gtest_cases("Segmentation fault") == []


def test_reasons_of_skipped_tests_are_listed_once():
    assert skip_reasons("skipped: no podman\nx.cc:3: Skipped\nneeds root\n\ny.cc:9: Skipped\nneeds root\n") == [
        "skipped: needs root", "skipped: no podman"]


def steady(build, *words, run="1"):
    done = subprocess.run([sys.executable, HERE / "steady.py", "--build", build, "--run", run, "--stage", "units", *map(str, words)],
                          capture_output=True, text=True, cwd=build)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def entries(tmp_path):
    """entries(NAME=SCRIPT, ...): a build folder for ctest; a script sees in $run how often it ran before."""
    def write(**scripts):
        lines = []
        for name, script in scripts.items():
            path = tmp_path / f"{name}.sh"
            path.write_text(f'runs={tmp_path}/{name}.runs; run=$(cat $runs 2>/dev/null || echo 0); echo $((run + 1)) >$runs\n{script}\n')
            lines.append(f"add_test({name} sh {path})")
        (tmp_path / "CTestTestfile.cmake").write_text("\n".join(lines))
        return tmp_path
    return write


def runs(build, name):
    return int((build / f"{name}.runs").read_text())


def test_an_entry_that_fails_once_is_listed_and_the_second_time_fails_the_run(entries):
    build = entries(sound="exit 0", flaky='echo "this was run $run"; test $run -gt 0')
    status, told = steady(build, "ctest", build)
    assert status == 0 and "unsteady: flaky failed, then passed 2 times alone" in told
    assert runs(build, "flaky") == 3 and runs(build, "sound") == 1

    status, told = steady(build, "verdict")
    assert status == 0 and told.splitlines()[-1] == "1 unsteady"
    log, = (build / "logs/unsteady").iterdir()
    assert f"unsteady: units: flaky ({log})" in told and "this was run 0" in log.read_text()
    assert [(e["run"], e["test"]) for e in json.loads((build / "unsteady.json").read_text())] == [("1", "flaky")]

    (build / "flaky.runs").unlink()
    assert steady(build, "ctest", build, run="2")[0] == 0
    status, told = steady(build, "verdict", run="2")
    assert status == 1 and "FAILED: flaky: unsteady in an earlier run too" in told
    assert steady(build, "verdict", run="3") == (0, "0 unsteady\n")


def test_an_entry_that_fails_when_repeated_stays_a_failure(entries):
    build = entries(always="exit 1", mostly="test $run = 1")
    status, told = steady(build, "ctest", build)
    assert status == 1 and "failed again alone: always" in told and "failed again alone: mostly" in told
    assert runs(build, "always") == 2 and runs(build, "mostly") == 3
    assert steady(build, "verdict") == (0, "0 unsteady\n")


def test_three_unsteady_entries_fail_the_run(entries):
    build = entries(**{name: "test $run -gt 0" for name in "abc"})
    assert steady(build, "ctest", build)[0] == 0
    status, told = steady(build, "verdict")
    assert status == 1 and "FAILED: 3 unsteady tests in one run; at most 2 pass" in told and told.splitlines()[-1] == "3 unsteady"


def test_only_the_failed_case_of_a_gtest_binary_is_repeated(entries):
    build = entries(binary=f'[ $run -gt 0 ] || {{ echo "{GTEST_END}"; exit 1; }}; [ -n "$GTEST_FILTER" ]')
    status, told = steady(build, "ctest", build)
    assert status == 0 and "unsteady: binary Streams.waits failed" in told and "unsteady: binary All/Copies.arrive/2 failed" in told
    assert runs(build, "binary") == 5


@pytest.mark.parametrize("report", ["WARNING: ThreadSanitizer: data race", "ERROR: AddressSanitizer: heap-use-after-free",
                                    "a.cc:3: runtime error: x"])
def test_what_a_sanitizer_reports_once_stays_a_failure(entries, report):
    build = entries(racing=f'echo "{report}"; test $run -gt 0')
    status, told = steady(build, "ctest", build)
    assert status == 1 and "because a sanitizer reported: racing" in told and runs(build, "racing") == 1


def test_an_entry_that_cannot_be_started_fails(tmp_path):
    (tmp_path / "CTestTestfile.cmake").write_text("add_test(missing /no/such/program)")
    assert steady(tmp_path, "ctest", tmp_path)[0] == 1


def test_many_failures_are_not_repeated(entries):
    build = entries(**{f"t{i}": "test $run -gt 0" for i in range(9)})
    status, told = steady(build, "ctest", build)
    assert status == 1 and "9 failed tests, none of them run again" in told and runs(build, "t0") == 1


CASES = """import pathlib, pytest
def count(name):
    path = pathlib.Path(name)
    path.write_text(str(1 + (before := int(path.read_text()) if path.exists() else 0)))
    return before
@pytest.fixture
def ends_badly():
    yield
    assert count("end")
def test_sound(): pass
@pytest.mark.parametrize("size", ["1 GiB"])
def test_flaky(size):
    print("seen by the test")
    assert count("flaky"), "not yet"
def test_with_a_flaky_end(ends_badly): pass
"""


def test_a_case_of_pytest_that_fails_once_is_listed(tmp_path):
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "test_cases.py").write_text(CASES)
    status, told = steady(tmp_path, "pytest", sys.executable, "cases")
    assert status == 0, told
    assert "unsteady: cases/test_cases.py::test_flaky[1 GiB] failed" in told and "::test_with_a_flaky_end failed" in told
    assert (tmp_path / "flaky").read_text() == "3"
    logs = "".join(path.read_text() for path in (tmp_path / "logs/unsteady").iterdir())
    assert "AssertionError: not yet" in logs and "seen by the test" in logs
    (folder / "test_cases.py").write_text("def test_broken(): assert False\n")
    status, told = steady(tmp_path, "pytest", sys.executable, "cases")
    assert status == 1 and "failed again alone: cases/test_cases.py::test_broken" in told


def test_a_file_that_pytest_cannot_import_fails(tmp_path):
    (tmp_path / "test_cases.py").write_text("this is no Python\n")
    assert steady(tmp_path, "pytest", sys.executable, "test_cases.py")[0] == 1
