"""Decides what failed tests mean for a run of ./test. Pure functions without files, processes or a clock
(steady.py has those).

A test that fails is repeated by itself at most twice. If it passes both times it is unsteady: it fails less
often than a broken test but more often than it should. One or two unsteady tests are listed and the run
passes. Three in one run fail it, and so does a test that was unsteady in an earlier run of the same checkout.
"""
import dataclasses

RUNS_ALONE = 2
MAX_UNSTEADY_TESTS = 2  # Per run.
MAX_TESTS_TO_REPEAT = 8  # Per stage. If more fail, the code or the machine is broken.


@dataclasses.dataclass(frozen=True)
class Result:
    """A test that failed in a stage, and the results of its repetitions."""
    stage: str
    test: str
    passed_alone: tuple = ()  # One bool per repetition, in order; empty if there was none.

    @property
    def is_unsteady(self):
        return self.passed_alone == (True,) * RUNS_ALONE


@dataclasses.dataclass(frozen=True)
class Verdict:
    failed: list  # Results of tests that stay failures.
    unsteady: list  # Results of tests that are unsteady.
    reasons: list  # Messages about why unsteady tests fail the run.

    @property
    def passes(self):
        return not self.failed and not self.reasons


def judge(results, earlier=()):
    """Returns the verdict on the failed tests of one run. `earlier` has the names of tests that were unsteady in earlier runs."""
    unsteady = [r for r in results if r.is_unsteady]
    reasons = [f"{test}: unsteady in an earlier run too" for test in sorted({r.test for r in unsteady} & set(earlier))]
    if len(unsteady) > MAX_UNSTEADY_TESTS:
        reasons.append(f"{len(unsteady)} unsteady tests in one run; at most {MAX_UNSTEADY_TESTS} pass")
    return Verdict([r for r in results if not r.is_unsteady], unsteady, reasons)
