"""`ronri data`, every command and every option."""

import json
import re
from pathlib import Path

import pytest

from boards import HARD, PUZZLE, SOLUTION
from command_line import Ronri
from ronri.cli import main
from ronri.data.splits import set_keys
from ronri.data.store import PuzzleSet


@pytest.mark.parametrize("name", ["a.ronri", "a.csv", "a.csv.gz", "a.txt"])
def test_generated_puzzles_can_be_read_back(ronri: Ronri, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    report = ronri.json("data", "generate", out, "--count", 30, "--clues", "28-30", "--seed", 1)
    assert report["kept"] == 30
    found = ronri.json("data", "describe", out)
    assert found["n"] == 30
    assert set(found["clues"]) == {"28", "29", "30"}


def test_generating_by_kind_size_and_shard(ronri: Ronri, tmp_path: Path) -> None:
    def made(name: str, *options: object) -> PuzzleSet:
        out = tmp_path / f"{name}.ronri"
        assert "12 puzzles in" in ronri("data", "generate", out, "--count", 12, *options)
        return PuzzleSet(out)

    assert made("six", "--size", 6).geometry.size == 6
    assert (made("four", "--size", 4, "--clues", 6).puzzles() > 0).sum() == 72
    minimal = made("minimal", "--kind", "minimal", "--threads", 1)
    seeds = tmp_path / "seeds.txt"
    seeds.write_text(HARD)
    hard = made("hard", "--kind", "hard", "--ancestors", seeds, "--guesses", 12, "--copies", 2)
    assert (hard.ratings() >= 12).all()
    tricky = made("tricky", "--kind", "tricky", "--guesses", 9, "--copies", 2)
    assert tricky.header.provenance["least_guesses"] == "9 over 2 traces"
    other = made("other", "--kind", "minimal", "--shard", "2/2", "--seed", 3)
    assert not set(set_keys(minimal).split.tolist()) & set(set_keys(other).split.tolist())


def test_excluded_sets_are_kept_out(ronri: Ronri, tmp_path: Path) -> None:
    first, second = tmp_path / "1.ronri", tmp_path / "2.ronri"
    ronri("data", "generate", first, "--count", 20)
    report = ronri.json("data", "generate", second, "--count", 20, "--exclude", first)
    assert report["excluded"] == 20
    overlap = ronri.json("data", "describe", second, "--against", first)["overlap"]
    assert (overlap["puzzles"], overlap["solutions"]) == (0, 0)
    # Given twice, both count.
    third, both = tmp_path / "3.ronri", ("--exclude", first, "--exclude", second)
    report = ronri.json("data", "generate", third, "--count", 20, *both)
    assert report["excluded"] == 40
    message = ronri("data", "generate", second, "--count", 1, "--exclude", "mini4", status=2)
    assert "mini4 has 4x4 boards" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--clues", "many"), "written like 30 or 24-36"),
        (("--clues", "90"), "make no sense"),
        (("--shard", "3/2"), "shard 3/2 does not exist"),
        (("--seed", "-1"), "a seed lies between"),
        (("--exclude", "nonsense"), "there is no file 'nonsense'"),
        (("--kind", "minimal", "--clues", "30"), "--clues goes with --kind clues"),
        (("--guesses", "5"), "--guesses goes with --kind hard or tricky"),
        (("--ancestors", "mini4"), "--ancestors goes with --kind hard"),
        (("--kind", "hard", "--guesses", "nan"), "takes more than nan guesses"),
    ],
)
def test_bad_orders_are_refused(
    ronri: Ronri, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    out = tmp_path / "out.ronri"
    assert message in ronri("data", "generate", out, "--count", 1, *options, status=2)
    assert not out.exists()


def test_an_unknown_kind_of_file_is_refused(ronri: Ronri, tmp_path: Path) -> None:
    message = ronri("data", "generate", tmp_path / "out.xlsx", "--count", 1, status=2)
    assert ".ronri, .csv, .csv.gz, .txt or .txt.gz" in message


LIST = f"""grid,answer,difficulty,origin
{PUZZLE},{SOLUTION},1.5,paper
{PUZZLE},{SOLUTION[::-1]},1.5,paper
nonsense,{SOLUTION},1.5,paper
{PUZZLE},,2.5,book
"""
COLUMNS = (
    *("--puzzle", "grid", "--solution", "answer"),
    *("--rating", "difficulty", "--source-column", "origin"),
)


def test_importing_reports_every_row(ronri: Ronri, tmp_path: Path) -> None:
    source, out = tmp_path / "list.csv", tmp_path / "set.ronri"
    source.write_text(LIST)
    shown = ronri("data", "import", source, out, *COLUMNS)
    assert "4 rows read, 2 kept, 2 refused" in shown
    assert "line 3: " in shown
    assert "line 4: " in shown
    found = PuzzleSet(out)
    assert found.header.sources == ("paper", "book")
    assert found.ratings().tolist() == [1.5, 2.5]
    report = ronri.json("data", "import", source, out, *COLUMNS, "--limit", 1)
    assert (report["rows"], report["kept"]) == (1, 1)
    none = ronri("data", "import", source, out, *COLUMNS, "--fraction", 1e-6, "--seed", 1, status=2)
    assert "nothing was written" in none


def test_strict_stops_at_the_first_bad_row(ronri: Ronri, tmp_path: Path) -> None:
    source, out = tmp_path / "list.csv", tmp_path / "set.ronri"
    source.write_text(LIST)
    message = ronri("data", "import", source, out, *COLUMNS, "--strict", status=2)
    assert "list.csv:3" in message
    assert not out.exists()


def test_bad_imports_are_explained(ronri: Ronri, tmp_path: Path) -> None:
    source, out = tmp_path / "list.csv", tmp_path / "set.ronri"
    source.write_text(LIST)
    assert "grid" in ronri("data", "import", source, out, status=2)
    assert "--puzzle NAME" in ronri("data", "import", source, out, "--rating", "x", status=2)
    assert "no file" in ronri("data", "import", tmp_path / "nothing.csv", out, status=2)
    assert "must end in .ronri" in ronri("data", "import", source, tmp_path / "a.csv", status=2)
    assert "no list but a suite" in ronri("data", "import", "mini4", out, status=2)
    ronri("data", "generate", tmp_path / "b.ronri", "--count", 1)
    assert "is a set already" in ronri("data", "import", tmp_path / "b.ronri", out, status=2)
    assert "nothing was written" in ronri(
        "data", "import", source, out, "--puzzle", "answer", "--limit", 1, "--solution", "grid",
        status=2,
    )  # fmt: skip


def test_describing_for_people(ronri: Ronri) -> None:
    shown = ronri("data", "describe", "mini4", "--against", "mini4", "--threads", 1)
    assert re.search(r"puzzles\s+500 \(4x4\)", shown)
    assert re.search(r"also in mini4\s+500 puzzles", shown)
    assert "█" in shown


def test_rows_left_out_of_a_list_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "list.txt"
    source.write_text(f"{PUZZLE}\n{'.' * 81}\n")
    assert main(["data", "describe", str(source)]) == 0
    captured = capsys.readouterr()
    assert "rows left out: 1 several solutions; `ronri data import` tells which" in captured.err
    assert re.search(r"refused\s+1 several solutions", captured.out)
    # A stored set keeps the count, but has been reported on when it was imported.
    out = tmp_path / "set.ronri"
    assert main(["data", "import", str(source), str(out)]) == 0
    capsys.readouterr()
    assert main(["data", "describe", str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert re.search(r"refused\s+1 several solutions", captured.out)


def test_splitting(ronri: Ronri, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    shown = ronri("data", "split", "mini4", folder, "--test", 100, "--validation", "10%")
    assert "test.ronri: 100 puzzles" in shown
    rule = ("--rule", folder / "split.json")
    report = ronri.json("data", "split", "mini4", tmp_path / "b", *rule)
    assert report["rule"] == json.loads((folder / "split.json").read_text())
    message = ronri("data", "split", "mini4", tmp_path / "c", *rule, "--test", 5, status=2)
    assert "--rule fixes the sizes" in message
    assert report["counts"]["test"] == 100
    assert sum(report["counts"].values()) == 500
    assert "a size is a count" in ronri(
        "data", "split", "mini4", folder, "--test", "lots", status=2
    )
