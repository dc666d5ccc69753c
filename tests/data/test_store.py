import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards import OTHERS
from ronri.data import store
from ronri.data.store import Header, PuzzleSet, StoreError, StoreWriter
from ronri.sudoku.geometry import NINE, SIX, STANDARD, Geometry

FIXED_HEAD = 44


class Example(NamedTuple):
    puzzles: np.ndarray
    solutions: np.ndarray
    ratings: np.ndarray
    sources: list[str]

    def part(self, start: int, stop: int) -> "Example":
        rows = slice(start, stop)
        arrays = (self.puzzles[rows], self.solutions[rows], self.ratings[rows])
        return Example(*arrays, self.sources[rows])


def example(geometry: Geometry, count: int, seed: int = 0) -> Example:
    """Random digits: a set stores grids, it does not ask whether they keep the rules."""
    random = np.random.default_rng(seed)
    shape = (count, geometry.cells)
    solutions = random.integers(1, geometry.size + 1, shape).astype(np.uint8)
    puzzles = solutions * (random.random(shape) < random.random()).astype(np.uint8)
    ratings = random.choice([np.nan, 0, 0.5, 34.6, 65504], count).astype(np.float32)
    sources = random.choice(["royle", "eleven", "naïve, “quoted”"], count).tolist()
    return Example(puzzles, solutions, ratings, sources)


def write(path: Path, geometry: Geometry, example: Example, **options: Any) -> Path:
    with StoreWriter(path, geometry, **options) as writer:
        writer.append(*example)
    return path


def partials(folder: Path) -> list[Path]:
    return list(folder.glob("*.partial"))


@given(st.sampled_from((*STANDARD, *OTHERS)), st.integers(0, 30), st.integers(0, 2**32))
def test_what_goes_in_comes_out(
    tmp_path_factory: pytest.TempPathFactory, geometry: Geometry, count: int, seed: int
) -> None:
    given = example(geometry, count, seed)
    path = write(tmp_path_factory.mktemp("set") / "some.ronri", geometry, given)
    opened = PuzzleSet(path)
    assert len(opened) == count
    assert opened.geometry == geometry
    np.testing.assert_array_equal(opened.puzzles(), given.puzzles)
    np.testing.assert_array_equal(opened.solutions(), given.solutions)
    kept = given.ratings.astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(opened.ratings(), kept)
    assert [opened.header.sources[i] for i in opened.sources()] == given.sources


def test_a_hundred_puzzles_take_5500_bytes(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ronri", NINE, example(NINE, 100))
    assert path.stat().st_size == store.PAYLOAD_OFFSET + 5500


def test_rows_can_be_asked_for_in_every_way(tmp_path: Path) -> None:
    given = example(NINE, 50)
    opened = PuzzleSet(write(tmp_path / "a.ronri", NINE, given))
    mask = np.arange(50) % 3 == 0
    for rows in (slice(3, 9), slice(None, None, -2), np.array([49, 0, 7, 7, -1]), mask):
        np.testing.assert_array_equal(opened.puzzles(rows), given.puzzles[rows])
        np.testing.assert_array_equal(opened.solutions(rows), given.solutions[rows])
        assert len(opened.ratings(rows)) == len(opened.sources(rows)) == len(given.puzzles[rows])
    assert opened.puzzles(np.zeros(0, np.int64)).shape == (0, 81)


def test_chunks_are_the_whole_set_in_order(tmp_path: Path) -> None:
    given = example(SIX, 50)
    opened = PuzzleSet(write(tmp_path / "a.ronri", SIX, given))
    chunks = list(opened.chunks(15))
    assert [len(chunk.puzzles) for chunk in chunks] == [15, 15, 15, 5]
    for name in ("puzzles", "solutions", "ratings", "sources"):
        whole = np.concatenate([getattr(chunk, name) for chunk in chunks])
        np.testing.assert_array_equal(whole, getattr(opened, name)())


def test_what_is_read_can_be_changed_but_the_file_cannot(tmp_path: Path) -> None:
    opened = PuzzleSet(write(tmp_path / "a.ronri", NINE, example(NINE, 5)))
    opened.puzzles()[:] = 0
    opened.solutions()[:] = 0
    opened.ratings()[:] = 0
    opened.sources()[:] = 0
    with pytest.raises(ValueError, match="read-only"):
        opened.records[:] = 0


def test_header_tells_where_a_set_comes_from(tmp_path: Path) -> None:
    provenance = {"file": "liste.csv", "who": "ゆき"}
    given = example(NINE, 50)
    header = PuzzleSet(write(tmp_path / "a.ronri", NINE, given, provenance=provenance)).header
    assert header.provenance == provenance
    assert header.count == 50
    assert set(header.sources) == set(given.sources)
    assert header.payload_sha256 == hashlib.sha256(_payload(tmp_path / "a.ronri")).hexdigest()


def test_equal_puzzles_make_equal_files_however_they_are_cut(tmp_path: Path) -> None:
    given = example(NINE, 50)
    whole = write(tmp_path / "a.ronri", NINE, given)
    with StoreWriter(tmp_path / "b" / "c.ronri", NINE) as writer:
        for start in range(0, 50, 7):
            writer.append(*given.part(start, start + 7))
    assert whole.read_bytes() == (tmp_path / "b" / "c.ronri").read_bytes()


def test_unknown_ratings_and_one_source_for_all(tmp_path: Path) -> None:
    puzzles, solutions, *_ = example(NINE, 5)
    with StoreWriter(tmp_path / "a.ronri", NINE) as writer:
        writer.append(puzzles, solutions, sources="generated")
    opened = PuzzleSet(tmp_path / "a.ronri")
    assert np.isnan(opened.ratings()).all()
    assert opened.header.sources == ("generated",)


# Damage.


def _payload(path: Path) -> bytes:
    return path.read_bytes()[store.PAYLOAD_OFFSET :]


def refused(path: Path, content: bytes, **options: Any) -> str:
    """The one line that says why a file is refused."""
    path.write_bytes(content)
    with pytest.raises(StoreError) as caught:
        PuzzleSet(path, **options)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "; " in message, "what is wrong; what to do"
    assert "\n" not in message
    return message


def test_every_flipped_byte_is_noticed(tmp_path: Path) -> None:
    whole = write(tmp_path / "a.ronri", NINE, example(NINE, 3)).read_bytes()
    header_end = FIXED_HEAD + int.from_bytes(whole[8:12], "little")
    damaged = [*range(header_end + 1), *range(header_end, store.PAYLOAD_OFFSET, 97)]
    damaged += [store.PAYLOAD_OFFSET - 1, *range(store.PAYLOAD_OFFSET, len(whole))]
    for place in damaged:
        content = bytearray(whole)
        content[place] ^= 1 << place % 8
        refused(tmp_path / "b.ronri", bytes(content))


def test_every_wrong_length_is_noticed(tmp_path: Path) -> None:
    whole = write(tmp_path / "a.ronri", NINE, example(NINE, 20)).read_bytes()
    lengths = [*range(0, 500, 7), *range(500, len(whole), 501), len(whole) - 55, len(whole) - 1]
    for length in lengths:
        for verify in (True, False):
            refused(tmp_path / "b.ronri", whole[:length], verify=verify)
    for more in (b"\0", bytes(55)):
        assert "too long" in refused(tmp_path / "b.ronri", whole + more, verify=False)
    assert "cut short" in refused(tmp_path / "b.ronri", whole[:-1], verify=False)
    assert "empty" in refused(tmp_path / "b.ronri", b"")


def test_other_files_are_no_sets(tmp_path: Path) -> None:
    assert "no Ronri set" in refused(tmp_path / "a.csv", b"source,question,answer,rating\n" * 999)
    with pytest.raises(FileNotFoundError):
        PuzzleSet(tmp_path / "missing.ronri")


def test_verify_can_be_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ronri", NINE, example(NINE, 3))
    path.write_bytes(path.read_bytes()[:-1] + b"\x07")
    assert len(PuzzleSet(path, verify=False)) == 3
    assert "records are damaged" in refused(path, path.read_bytes())


def forged(whole: bytes, text: bytes) -> bytes:
    """A file with another header, whose checksum is right."""
    head = whole[:8] + len(text).to_bytes(4, "little") + hashlib.sha256(text).digest() + text
    return head.ljust(store.PAYLOAD_OFFSET, b"\0") + whole[store.PAYLOAD_OFFSET :]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"format": 2}, "format 2"),
        ({"format": None}, "format None"),
        ({"colour": "blue"}, "unknown keys: colour"),
        ({"geometry": [7, 7]}, "make no board"),
        ({"geometry": 9}, "wrong kind"),
        ({"geometry": [2, 2]}, "damaged"),
        ({"geometry": [3.0, 3.0]}, "wrong kind"),
        ({"count": 2}, "too long"),
        ({"count": 4}, "cut short"),
        ({"count": -1}, "wrong kind"),
        ({"count": "3"}, "wrong kind"),
        ({"layout": {}}, "damaged"),
        ({"sources": 3}, "wrong kind"),
        ({"sources": ["a", 3]}, "wrong kind"),
        ({"provenance": {"limit": 3}}, "wrong kind"),
        ({"payload_sha256": "0" * 64}, "records are damaged"),
    ],
)
def test_headers_are_read_strictly(tmp_path: Path, changes: dict[str, Any], complaint: str) -> None:
    whole = write(tmp_path / "a.ronri", NINE, example(NINE, 3)).read_bytes()
    length = int.from_bytes(whole[8:12], "little")
    fields = json.loads(whole[FIXED_HEAD : FIXED_HEAD + length]) | changes
    text = json.dumps(fields, sort_keys=True, ensure_ascii=False).encode()
    assert complaint in refused(tmp_path / "b.ronri", forged(whole, text))


def test_headers_lack_nothing(tmp_path: Path) -> None:
    whole = write(tmp_path / "a.ronri", NINE, example(NINE, 3)).read_bytes()
    length = int.from_bytes(whole[8:12], "little")
    text = whole[FIXED_HEAD : FIXED_HEAD + length]
    assert forged(whole, text) == whole
    for key in json.loads(text):
        fields = json.loads(text)
        del fields[key]
        message = refused(tmp_path / "b.ronri", forged(whole, json.dumps(fields).encode()))
        assert key in message
    for nonsense in (b"", b"[1, 2]", b"7", b"{"):
        assert "no JSON" in refused(tmp_path / "b.ronri", forged(whole, nonsense))
    # The same fields written another way are not what the writer wrote.
    assert "damaged" in refused(
        tmp_path / "b.ronri", forged(whole, json.dumps(json.loads(text), indent=1).encode())
    )


# Writing.


def interrupted(path: Path) -> None:
    with StoreWriter(path, NINE) as writer:
        writer.append(*example(NINE, 100))
        assert len(partials(path.parent)) == 1
        raise KeyboardInterrupt


def test_an_exception_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path / "a.ronri")
    assert list(tmp_path.iterdir()) == []


def test_an_exception_leaves_the_old_set(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ronri", NINE, example(NINE, 10))
    old = path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        interrupted(path)
    assert path.read_bytes() == old
    assert partials(tmp_path) == []
    write(path, NINE, example(NINE, 11))
    assert len(PuzzleSet(path)) == 11


def test_a_partial_file_is_no_set_and_in_nobodys_way(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "a.ronri", NINE) as writer:
        writer.append(*example(NINE, 5000))
        (partial,) = partials(tmp_path)
        assert partial.name.startswith("a.ronri.")
        left_behind = partial.read_bytes()
        with StoreWriter(tmp_path / "a.ronri", NINE) as other:
            other.append(*example(NINE, 7))
        assert len(PuzzleSet(tmp_path / "a.ronri")) == 7
    assert len(PuzzleSet(tmp_path / "a.ronri")) == 5000
    assert len(left_behind) > store.PAYLOAD_OFFSET
    refused(tmp_path / "left.ronri", left_behind)


def test_a_folder_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder"), StoreWriter(tmp_path, NINE):
        pass


def test_what_cannot_be_stored_is_refused(tmp_path: Path) -> None:
    good = example(NINE, 5)

    def refuse(complaint: str, **changes: Any) -> None:
        with StoreWriter(tmp_path / "a.ronri", NINE) as writer:
            writer.append(*good)
            with pytest.raises(ValueError, match=complaint):
                writer.append(*good._replace(**changes))
            # What was refused has left no trace.
            writer.append(*good)
        assert len(PuzzleSet(tmp_path / "a.ronri")) == 10

    def changed(array: np.ndarray, value: float) -> np.ndarray:
        array = array.copy()
        array[3] = value
        return array

    refuse("puzzle 8 .* not 1 to 9", solutions=changed(good.solutions, 0), puzzles=good.puzzles * 0)
    refuse("puzzle 8 .* not 1 to 9", solutions=changed(good.solutions, 10))
    other = changed(good.puzzles, 0)
    other[3, 7] = good.solutions[3, 7] % 9 + 1
    refuse("puzzle 8 .* clues", puzzles=other)
    refuse("puzzle 8 .* rating", ratings=changed(good.ratings, 65505))
    refuse("puzzle 8 .* rating", ratings=changed(good.ratings, -np.inf))
    refuse("81 cells", puzzles=good.puzzles[:, :36], solutions=good.solutions[:, :36])
    refuse("sources", sources=good.sources[:4])


def test_sources_are_few_and_their_names_short(tmp_path: Path) -> None:
    given = example(NINE, 300)
    names = [f"list {i}" for i in range(300)]
    many = given._replace(sources=names)
    opened = PuzzleSet(write(tmp_path / "a.ronri", NINE, many.part(0, 256)))
    assert opened.header.sources == tuple(names[:256])
    assert opened.sources().tolist() == list(range(256))
    with StoreWriter(tmp_path / "b.ronri", NINE) as writer:
        writer.append(*many.part(0, 250))
        with pytest.raises(ValueError, match="256 sources, and 'list 256' would be one more"):
            writer.append(*many)
        writer.append(*many.part(250, 256))
    assert (tmp_path / "b.ronri").read_bytes() == opened.path.read_bytes()
    long = given._replace(sources=[f"list {i} {'x' * 100}" for i in range(300)])
    with pytest.raises(ValueError, match="shorten"):
        write(tmp_path / "c.ronri", NINE, long.part(0, 200))
    assert {path.name for path in tmp_path.iterdir()} == {"a.ronri", "b.ronri"}


def test_header_survives_its_own_encoding() -> None:
    header = Header(
        geometry=SIX, count=0, sources=("ä",), provenance={"a": "b"}, payload_sha256="0" * 64
    )
    assert Header.decode(header.encode()) == header
