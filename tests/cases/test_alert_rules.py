"""The alert rules for Prometheus must have its form and use only series that Carve's programs have, with labels that these
series have. tests/monitoring runs the rules in Prometheus."""
import pathlib
import re

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = ROOT / "deploy/prometheus/rules.yaml", ROOT / "deploy/kubernetes/alerts.yaml"
FAMILIES = (ROOT / "src/wire/api/metric_families.h").read_text()
SPAN = re.compile(r"[1-9][0-9]*(s|m|h|d|w)")
WORDS = {"sum", "max", "by", "rate", "increase", "or", "and", "unless", "offset"}
OF_PROMETHEUS = {"up": {"job", "instance"}}


def rules():
    return [rule for file in FILES for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]


def series():
    """Returns the labels of each series of the programs, from the table of families."""
    constants = {name: set(re.findall(r'"(\w+)"', labels)) for name, labels in re.findall(r"LabelNames (\w+) = \{([^}]*)\}", FAMILIES)}
    rows = re.findall(r'\{"(\w+)",\s*[\w:]+,\s*"\w*",\s*metric_labels::(\w+),', FAMILIES)
    out = {name: constants[labels] for name, labels in rows}
    for name in re.findall(r'\{"(\w+)",\s*MetricType::(?:summary|histogram)', FAMILIES):
        out |= {name + suffix: out[name] | {"le"} for suffix in ("_count", "_sum", "_bucket")}
    return out | OF_PROMETHEUS


def test_the_table_of_families_is_read():
    known = series()
    assert len(known) > 80 and known["carve_slice_memory_quota_bytes"] >= {"slice", "device", "account"}
    assert known["carve_extender_seconds_count"] == {"verb", "le"} and known["carve_cached_pods"] == set()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_groups_have_prometheus_form(file):
    document = yaml.safe_load(file.read_text())
    assert set(document) == {"groups"} and len({g["name"] for g in document["groups"]}) == len(document["groups"])
    for group in document["groups"]:
        assert set(group) == {"name", "rules"} and group["rules"]


def test_names_are_unique_because_a_cluster_loads_both_files():
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_rules_use_only_series_that_exist(rule):
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}, rule
    assert re.fullmatch(r"Carve[A-Za-z]+", rule["alert"]) and rule["annotations"]["summary"]
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert "for" not in rule or SPAN.fullmatch(rule["for"])
    expression = re.sub(r"\[[1-9][0-9]*[smhd]\]|offset [1-9][0-9]*[smhd]", "", rule["expr"])
    assert expression.count("(") == expression.count(")") and expression.count("{") == expression.count("}")
    known = series()
    names = set(re.findall(r"[a-z_][a-z0-9_]*", re.sub(r'\{[^}]*\}|by \([^)]*\)|"[^"]*"', "", expression))) - WORDS
    assert names and names <= set(known), names
    labels = set().union(*(known[name] for name in names)) | {"instance"}
    used = re.findall(r"\$labels\.(\w+)", str(rule["annotations"])) + re.findall(r"(\w+)(?:=~|=|!=)\"", expression)
    used += [word for words in re.findall(r"by \(([^)]*)\)", expression) for word in re.split(r", *", words)]
    for label in used:
        assert label in labels, f"{label} is no label of {names}"


def test_the_metrics_in_the_specification_have_alerts():
    expressions = " ".join(rule["expr"] for rule in rules())
    for name in ("carve_overcommitted_devices", "carve_ledger_drift_devices", "carve_setting_pending", "carve_watch_lag_seconds", "carve_relists_total"):
        assert name in expressions
