"""Runs tools/plot on a small replay and on small files, and checks panels, lines, names as XML, and
rejections.

  plot_test.py PROJECT CARVE-REPLAY
"""
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

PLOT, REPLAY = pathlib.Path(sys.argv[1]) / "tools/plot", sys.argv[2]
SVG = "{http://www.w3.org/2000/svg}"

NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(f"n{i},64000,262144,8,A\n" for i in range(4))
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n" + "".join(f"p{i},1000,1024,1,{200 + i % 7 * 100}\n" for i in range(50))
GROWTH = "panel,strategy,number,microseconds\n"

# Invalid files, and the expected part of the message about each.
REFUSED = [
    ("growth", "", "the headings are ''"),
    ("in-use", GROWTH, "they must be 'trace,strategy,asked_percent,in_use_percent'"),
    ("growth", GROWTH, "there is no row"),
    ("growth", GROWTH + "a,fgd,1\n", ":2: 'a,fgd,1' is not"),
    ("growth", GROWTH + "a,fgd,1,2\na,fgd,2,fast\n", ":3: 'a,fgd,2,fast' is not"),
    ("growth", GROWTH + "a,fgd,1,0\n", "not above 0"),
    ("in-use", "trace,strategy,asked_percent,in_use_percent\na,fgd,60,60\n", "end at 60 percent"),
]


def plot(kind, file):
    done = subprocess.run([PLOT, kind, file], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def panels(svg):
    """Returns each panel's texts and the number of its lines."""
    for panel in xml.etree.ElementTree.fromstring(svg).findall(SVG + "g"):
        yield [text.text for text in panel.iter(SVG + "text")], len(panel.findall(SVG + "polyline"))


def test_a_replay_is_drawn(folder):
    (folder / "nodes.csv").write_text(NODES)
    trace = folder / "a<b&c,d.csv"
    trace.write_text(PODS)
    curves = folder / "curves.csv"
    subprocess.run([REPLAY, "--nodes", folder / "nodes.csv", "--trace", trace, "--strategy", "first-fit,fgd", "--seeds", "1..2",
                    "--quiet", "--curves", curves], check=True, stdout=subprocess.DEVNULL)
    status, svg, error = plot("in-use", curves)
    assert status == 0, error
    (texts, lines), (legend, _) = panels(svg)
    assert texts[0].endswith("a<b&c,d"), texts
    assert lines == 3, "two strategies, and a cluster without waste"
    assert legend == ["% of the devices in use", "first-fit", "fgd", "no waste"], legend


def test_growth_is_drawn(folder):
    file = folder / "growth.csv"
    rows = [f"{panel},{strategy},{x},{x / 10}\n" for panel in ("nodes", "kinds") for strategy in ("fgd", "carve") for x in (10, 100, 1000)]
    file.write_text(GROWTH + "".join(rows))
    status, svg, error = plot("growth", file)
    assert status == 0, error
    (first, lines), (second, _) = panels(svg)
    assert (first[0], second[0], lines) == ("nodes", "kinds", 2)
    assert first[1:7] == ["1", "10", "100", "10", "100", "1000"], "the decades, then the steps"
    assert {"fgd", "carve"} <= set(first), "the legend is in the first panel"
    assert "fgd" not in second
    begin, end = 'points="46,240 ', '308,34"'
    assert svg.count(begin) == svg.count(end) == 4, "from the lower left corner to the upper right one"


def test_invalid_files_are_rejected(folder):
    file = folder / "wrong.csv"
    for kind, text, message in REFUSED:
        file.write_text(text)
        status, svg, error = plot(kind, file)
        assert (status, svg) == (1, ""), (text, status)
        assert error.startswith(f"plot: {file}") and message in error and error.count("\n") == 1, error
    assert plot("growth", folder / "nowhere.csv")[0] == 1


def main():
    for test in (test_a_replay_is_drawn, test_growth_is_drawn, test_invalid_files_are_rejected):
        with tempfile.TemporaryDirectory() as folder:
            test(pathlib.Path(folder))


if __name__ == "__main__":
    main()
