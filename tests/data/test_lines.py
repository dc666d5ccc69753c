import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lists import write
from ronri.data.formats import Reader
from ronri.data.lines import Lines


@pytest.mark.parametrize("start", [b"", b"puzzle\n"])
def test_an_endless_line_does_not_fill_the_memory(tmp_path: Path, start: bytes) -> None:
    path = write(tmp_path, start + b"x" * (40 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="no list of puzzles"):
            list(Reader(path))
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


@given(st.lists(st.text(" #\t\r\x1c\x7f\xa0\u3000\ufffdx,", max_size=5), min_size=1), st.booleans())
def test_a_line_with_text_is_never_taken_for_a_blank_one(lines: list[str], comments: bool) -> None:
    block = "".join(f"{line}\n" for line in lines).encode()
    found = Lines.of(block, 1, comments).with_text()
    said = [line.partition("#")[0] if comments else line for line in lines]
    assert found.numbers.tolist() == [i for i, line in enumerate(said, start=1) if line.strip()]
    assert [found.text(i).strip() for i in range(len(found))] == list(
        filter(None, map(str.strip, said))
    )
