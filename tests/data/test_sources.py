"""Names that become sets: suites, lists, files, downloads."""

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from ronri.data import sources
from ronri.data.sources import GENERATED, LISTS, PUBLIC, SUITES, TRAINING, locate, open_set
from ronri.data.splits import keys_of, set_keys
from ronri.data.store import PuzzleSet
from ronri.recipe import Data
from ronri.sudoku.board import parse, to_lines
from ronri.sudoku.breeding import hard_puzzles
from ronri.sudoku.exact import solve
from ronri.sudoku.generate import puzzles_with_clues


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """A plain list of 20 puzzles."""
    made = puzzles_with_clues(20, 30, seed=1)
    path = tmp_path / "some.txt"
    path.write_text("\n".join(to_lines(made.puzzles)))
    return path


@pytest.mark.parametrize("name", GENERATED)
def test_generated_suites_are_rebuilt_identically(name: str, cache: Path) -> None:
    """`open_set` refuses a suite whose checksum is not the one in the source."""
    suite, order = open_set(name, cache=cache), GENERATED[name].order
    assert len(suite) == order.count
    puzzles, solutions = suite.puzzles(), suite.solutions()
    found = solve(puzzles)
    assert (found.counts == 1).all()
    np.testing.assert_array_equal(found.solutions, solutions)
    clues = (puzzles > 0).sum(axis=1)
    assert (int(clues.min()), int(clues.max())) == (order.fewest_clues, order.most_clues)
    assert len(np.unique(keys_of(puzzles, solutions, suite.geometry).puzzles)) == order.count
    assert not np.isnan(suite.ratings()).any()


@pytest.mark.parametrize("name", [name for name in TRAINING if name.endswith("-train")])
def test_what_is_learned_from_shares_nothing_with_its_suite(
    name: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = TRAINING[name]
    order = replace(plain.order, count=min(plain.order.count, 1000))
    monkeypatch.setitem(TRAINING, name, replace(plain, order=order))
    learned, suite = open_set(name, cache=cache), open_set(name.removesuffix("-train"), cache=cache)
    assert len(learned) == order.count
    assert not np.isin(set_keys(learned).split, set_keys(suite).split).any()


def test_nothing_is_bred_from_what_recipes_hold_out() -> None:
    assert Data(train=("hard-train",)).validation == sources.HELD_OUT


def test_tricky_puzzles_are_made_apart_from_every_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suites hold what would come first: none of it may."""
    plain = TRAINING["tricky-made"]
    monkeypatch.setitem(
        TRAINING,
        "tricky-made",
        replace(plain, order=replace(plain.order, count=20), apart_from=("everyday",)),
    )
    first = open_set("tricky-made", lists=tmp_path, cache=tmp_path / "first")
    for suite in ("minimal", "clue17", "hard", "kaggle3m"):
        (tmp_path / f"{suite}.txt").write_text("\n".join(to_lines(first.puzzles())))
        monkeypatch.setitem(LISTS, suite, f"{suite}.txt")
    monkeypatch.setitem(
        TRAINING, "tricky-made", replace(plain, order=replace(plain.order, count=20))
    )
    made = open_set("tricky-made", lists=tmp_path, cache=tmp_path / "cache")
    assert len(made) == 20
    assert not np.isin(set_keys(made).split, set_keys(first).split).any()
    apart_from = made.header.provenance["apart from"].split(", ")
    assert set(apart_from) == set(SUITES) - {"mini4", "mini6"}


def test_hard_puzzles_are_bred_apart_from_every_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suites hold what would be bred first: none of it may come."""
    hard = "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4.."
    (tmp_path / "hard-train.txt").write_text(hard)
    monkeypatch.setitem(LISTS, "hard-train", "hard-train.txt")
    plain = TRAINING["hard-bred"]
    order = replace(plain.order, count=30)
    first = hard_puzzles(
        20, seed=order.seed, least=order.least_guesses, ancestors=parse(hard)[None]
    )
    for suite in ("minimal", "clue17", "hard", "kaggle3m"):
        (tmp_path / f"{suite}.txt").write_text("\n".join(to_lines(first.puzzles)))
        monkeypatch.setitem(LISTS, suite, f"{suite}.txt")
    monkeypatch.setitem(TRAINING, "hard-bred", replace(plain, order=order))
    made = open_set("hard-bred", lists=tmp_path, cache=tmp_path / "cache")
    assert len(made) == 30
    assert (made.ratings() >= 10).all()
    apart_from = made.header.provenance["apart from"].split(", ")
    assert apart_from == ["everyday", "minimal", "clue17", "hard", "kaggle3m"]
    barred = keys_of(first.puzzles, first.solutions, made.geometry).split
    assert not np.isin(set_keys(made).split, barred).any()
    again = open_set("hard-bred", lists=tmp_path, cache=tmp_path / "cache")
    assert again.path == made.path


def test_a_stored_set_in_the_folder_of_lists_goes_first(listed: Path, tmp_path: Path) -> None:
    made = open_set(str(listed), cache=tmp_path / "cache")
    (tmp_path / "clue17-train.ronri").write_bytes(made.path.read_bytes())
    assert len(open_set("clue17-train", lists=tmp_path)) == 20


def test_a_suite_is_made_once_and_again_if_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cache = tmp_path
    with caplog.at_level("INFO"):
        path = open_set("mini4", cache=cache).path
        open_set("mini4", cache=cache)
    assert [record.getMessage() for record in caplog.records] == [
        "preparing mini4, once; it is kept for the next time"
    ]
    with monkeypatch.context() as patch:
        patch.setattr(sources, "write_suite", None)
        assert open_set("mini4", cache=cache).path == path
    content = path.read_bytes()
    path.write_bytes(content[:-5])
    assert open_set("mini4", cache=cache).path == path
    assert path.read_bytes() == content


def test_a_suite_that_comes_out_otherwise_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mini4 = GENERATED["mini4"]
    other = replace(mini4, order=replace(mini4.order, seed=1))
    monkeypatch.setitem(GENERATED, "mini4", other)
    with pytest.raises(ValueError, match="mini4 came out otherwise"):
        open_set("mini4", cache=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"the cache folder .*file.*set RONRI_CACHE"):
        open_set("mini4", cache=tmp_path / "file")


def test_rows_left_out_of_a_list_are_counted(listed: Path, tmp_path: Path) -> None:
    listed.write_text(listed.read_text() + "\n" + "." * 81 + "\n" + "x" * 81)
    for _ in range(2):
        found = open_set(str(listed), cache=tmp_path / "cache")
        assert len(found) == 20
        refused = found.header.provenance["refused"]
        assert "1 several solutions" in refused
        assert "1 unreadable puzzle" in refused


def test_what_is_no_list_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder"):
        locate(str(tmp_path))
    with pytest.raises(ValueError, match="mini4 is no list but a suite"):
        locate("mini4")
    (tmp_path / "text.ronri").write_text("not a set")
    with pytest.raises(ValueError, match="this is no Ronri set"):
        open_set(str(tmp_path / "text.ronri"))


def test_suites_have_the_names_of_the_design() -> None:
    assert set(SUITES) == {
        "everyday", "minimal", "clue17", "hard", "kaggle3m", "mini4", "mini6",
    }  # fmt: skip


def test_a_list_is_imported_once(
    listed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    found = open_set(str(listed), cache=cache)
    assert to_lines(found.puzzles()) == listed.read_text().split()
    with monkeypatch.context() as patch:
        patch.setattr(sources, "import_file", None)
        assert open_set(str(listed), cache=cache).path == found.path
    # A changed list is another list.
    listed.write_text(listed.read_text().split()[0])
    assert len(open_set(str(listed), cache=cache)) == 1
    # A set is opened as it is.
    assert open_set(str(found.path), cache=cache).path == found.path


def test_a_list_without_puzzles_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "none.txt"
    path.write_text("." * 81 + "\n")
    with pytest.raises(
        ValueError, match=r"none\.txt has no puzzle that can be used.*more than one solution"
    ):
        open_set(str(path), cache=tmp_path / "cache")


def test_real_lists_are_found_where_the_user_says(
    listed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / LISTS["hard"]).write_text(listed.read_text())
    assert len(open_set("hard", lists=tmp_path, cache=tmp_path / "cache")) == 20
    monkeypatch.setenv("RONRI_DATA", str(tmp_path))
    assert locate("hard") == tmp_path / LISTS["hard"]
    with pytest.raises(ValueError, match=r"clue17 needs the file clue17-test\.csv\.gz.*RONRI_DATA"):
        locate("clue17")


def test_real_lists_are_looked_for_nearby(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RONRI_DATA", raising=False)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    with pytest.raises(ValueError, match="no folder of lists is known"):
        locate("hard")
    (tmp_path / "shared" / "data").mkdir(parents=True)
    (tmp_path / "shared" / "data" / LISTS["hard"]).touch()
    assert locate("hard").samefile(tmp_path / "shared" / "data" / LISTS["hard"])


def test_the_cache_is_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RONRI_CACHE", str(tmp_path / "mine"))
    assert sources.cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("RONRI_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert sources.cache_folder() == tmp_path / "ronri"


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no file 'nonsense'.*everyday.*hard-train.*kaggle-9m"):
        locate("nonsense")


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **functions: Any) -> None:
    """A module that answers instead of the real library."""
    module = ModuleType(name)
    for function, body in functions.items():
        setattr(module, function, body)
    monkeypatch.setitem(sys.modules, name, module)


def test_kaggle_and_hugging_face_are_asked_for_the_right_file(
    listed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def dataset_download(handle: str, path: str | None = None) -> str:
        asked.append((handle, path))
        return str(listed)

    def hf_hub_download(repo_id: str, filename: str, *, repo_type: str) -> str:
        asked.append((repo_id, filename, repo_type))
        return str(listed)

    stand_in(monkeypatch, "kagglehub", dataset_download=dataset_download)
    stand_in(monkeypatch, "huggingface_hub", hf_hub_download=hf_hub_download)
    for name in ("kaggle-9m", "sudoku-extreme", "kaggle:me/mine/deep/file.csv"):
        assert locate(name) == listed
    assert asked == [
        ("rohanrao/sudoku", "sudoku.csv"),
        ("sapientinc/sudoku-extreme", "train.csv", "dataset"),
        ("me/mine", "deep/file.csv"),
    ]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_failed_download_says_what_to_do_instead(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> str:
        raise ConnectionError("no route to host\nand a long traceback")

    stand_in(monkeypatch, "kagglehub", dataset_download=fail)
    stand_in(monkeypatch, "huggingface_hub", hf_hub_download=fail)
    with pytest.raises(ValueError, match=r"no route to host.*by hand") as caught:
        locate(name)
    assert "\n" not in str(caught.value)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # None in sys.modules makes an import fail, whether or not the library is installed.
    monkeypatch.setitem(sys.modules, "kagglehub", None)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ValueError, match=r"needs kagglehub: pip install 'ronri\[kaggle\]'"):
        locate("kaggle-1m")
    with pytest.raises(ValueError, match=r"needs huggingface_hub: pip install 'ronri\[hub\]'"):
        locate("sudoku-extreme-test")


@pytest.mark.parametrize("name", ["kaggle:one", "hf:a/b", "hf:a/b/"])
def test_half_an_address_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="OWNER/NAME/FILE"):
        locate(name)


def test_real_suites_open(real_data: Path, tmp_path: Path) -> None:
    sizes = {"clue17": 5_000, "hard": 8_923, "minimal": 5_000, "kaggle3m": 486}
    for name, size in sizes.items():
        found: PuzzleSet = open_set(name, lists=real_data, cache=tmp_path)
        assert len(found) == size
        assert not np.isnan(found.ratings()).any()
