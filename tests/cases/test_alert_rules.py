"""The alert rules next to the manifests must have Prometheus' form and use only series that Carve's programs
have."""
import pathlib
import re

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy/kubernetes/alerts.yaml"
SPAN = re.compile(r"[1-9][0-9]*(s|m|h|d|w)")
WORDS = {"sum", "max", "by", "rate", "increase"}


def rules():
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def series():
    """Returns each series of the programs with the source of the file that writes it."""
    out = {}
    for file in (ROOT / "src").glob("**/*metrics*.cc"):
        text = file.read_text()
        for name in re.findall(r'"(carve_[a-z0-9_]+)"', text):
            out[name] = text
    return out


def test_groups_have_prometheus_form():
    document = yaml.safe_load(RULES.read_text())
    assert set(document) == {"groups"} and len({g["name"] for g in document["groups"]}) == len(document["groups"])
    for group in document["groups"]:
        assert set(group) == {"name", "rules"} and group["rules"]
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_rules_use_only_series_that_exist(rule):
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}, rule
    assert re.fullmatch(r"Carve[A-Za-z]+", rule["alert"]) and rule["annotations"]["summary"]
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert "for" not in rule or SPAN.fullmatch(rule["for"])
    expression = re.sub(r"\[[1-9][0-9]*[smhd]\]", "", rule["expr"])
    assert expression.count("(") == expression.count(")") and expression.count("{") == expression.count("}")
    known = series()
    names = set(re.findall(r"[a-z_][a-z0-9_]*", re.sub(r'\{[^}]*\}|by \([^)]*\)|"[^"]*"', "", expression)))
    assert names - WORDS, rule["expr"]
    assert names - WORDS <= set(known), names
    sources = "".join(known[name] for name in names - WORDS)
    for label in re.findall(r"\$labels\.([a-z]+)", str(rule["annotations"])):
        assert label == "instance" or f'"{label}"' in sources, f"{label} is no label of {names}"


def test_the_metrics_in_the_specification_have_alerts():
    expressions = " ".join(rule["expr"] for rule in rules())
    for name in ("carve_overcommitted_devices", "carve_ledger_drift_devices", "carve_setting_pending", "carve_watch_lag_seconds", "carve_relists_total"):
        assert name in expressions
