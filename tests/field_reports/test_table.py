"""The table must list existing tests with a status that it explains."""
import ast
import pathlib

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]


def rows():
    lines = [line for line in (HERE / "table.md").read_text().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def functions(path):
    return {node.name for node in ast.parse((ROOT / path).read_text()).body if isinstance(node, ast.FunctionDef)}


def test_every_report_has_its_test():
    assert len(rows()) > 25
    for about, report, test, status in rows():
        path, _, name = test.partition("::")
        assert name in functions(path), f"{report}: there is no {test}"
        assert (status == "GPU") == path.startswith("tests/gpu/"), report
        assert status in ("holds", "found", "GPU"), report


def test_every_test_here_is_in_the_table():
    named = {test for _, _, test, _ in rows()}
    for path in HERE.glob("test_*.py"):
        if path.name == "test_table.py":
            continue
        for name in functions(path.relative_to(ROOT)):
            assert not name.startswith("test_") or f"tests/field_reports/{path.name}::{name}" in named, name
