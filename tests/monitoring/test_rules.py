"""The rules of deploy/prometheus: promtool accepts them, each has unit tests, a heading in docs/alerts.md, and series that
Carve's programs have; promtool accepts what the programs serve."""
import pathlib
import re
import subprocess

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy/prometheus/rules.yaml"
TESTS = pathlib.Path(__file__).with_name("rules_test.yaml")
PAGE = (ROOT / "docs/alerts.md").read_text()


def rules():
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def promtool(*words, **options):
    return subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, timeout=60, **options)


@pytest.mark.parametrize("file", ["deploy/prometheus/rules.yaml", "deploy/kubernetes/alerts.yaml"])
def test_promtool_accepts_the_rules(file):
    done = promtool("check", "rules", ROOT / file)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_the_example_of_a_configuration(tmp_path):
    token = tmp_path / "token"
    token.write_text("x")
    text = (ROOT / "deploy/prometheus/scrape.yaml").read_text().replace("/etc/prometheus/carve-token", str(token))
    (tmp_path / "scrape.yaml").write_text(text)
    (tmp_path / "rules.yaml").write_text(RULES.read_text())
    done = promtool("check", "config", tmp_path / "scrape.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_rule_has_a_unit_test_that_passes():
    done = promtool("test", "rules", TESTS)
    assert done.returncode == 0, done.stdout + done.stderr
    cases = yaml.safe_load(TESTS.read_text())["tests"]
    tested = {test["alertname"] for case in cases for test in case["alert_rule_test"] if test["exp_alerts"]}
    assert tested == {rule["alert"] for rule in rules()}


def test_a_wrong_expectation_fails(tmp_path):
    wrong = TESTS.read_text().replace("../../deploy", str(ROOT / "deploy")).replace("The agent of n1 does not respond", "another text")
    (tmp_path / "wrong.yaml").write_text(wrong)
    assert promtool("test", "rules", tmp_path / "wrong.yaml").returncode != 0


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_has_a_runbook(rule):
    page, heading = rule["annotations"]["runbook_url"].split("#")
    assert page == "alerts.md" and heading == rule["alert"].lower()
    (section,) = re.findall(rf"(?ms)^## {rule['alert']}\n(.*?)(?=^## |\Z)", PAGE)
    for part in "**Symptom**", "**Check**", "**Remedy**":
        assert part in section, f"{rule['alert']} lacks {part}"
    assert "`" in section, "a command"


def test_the_page_has_no_heading_of_a_former_alert():
    assert set(re.findall(r"(?m)^## (Carve\w+)$", PAGE)) == {rule["alert"] for rule in rules()}
