"""The referee against broken traces."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronri.sudoku.geometry import FOUR, NINE, SIX, Geometry
from ronri.sudoku.replay import replay
from ronri.sudoku.trace import Vocabulary, record
from traces import NESTED_TRACE, TINY_TRACE, blanked, geometries, seeds, singles


@dataclass(frozen=True)
class Fault:
    """Write `new` for `old` in a trace: the token at `at` breaks a rule, for this `reason`."""

    name: str
    old: str
    new: str
    at: int
    reason: str


FAULTS = [
    Fault("clue twice", "[R1C2=1]", "[R1C2=1] [R1C2=1]", 1, "holds 1 already"),
    Fault("clues clash", "[R1C4=2]", "[R1C4=1]", 1, "row, column or box holds 1"),
    Fault("no clues_end", "[clues_end] ", "", 5, "before [clues_end]"),
    Fault("two clues_end", "[clues_end]", "[clues_end] [clues_end]", 6, "one [clues_end] already"),
    Fault("not forced", "[clues_end] [push]", "[clues_end]", 6, "not forced"),
    Fault("pop first", "[clues_end]", "[clues_end] [pop]", 6, "no push to undo"),
    Fault("success first", "[clues_end]", "[clues_end] [success]", 6, "not solved"),
    Fault("push twice", "[push] [R3C1=3]", "[push] [push] [R3C1=3]", 7, "followed by a placement"),
    Fault("push, pop", "[push] [R3C1=3]", "[push] [pop]", 7, "followed by a placement"),
    Fault("large cell", "[push] [R3C1=3]", "[push] [R2C1=2]", 7, "fewer candidates"),
    Fault("no candidate", "[push] [R3C1=3]", "[push] [R3C1=2]", 7, "row, column or box holds 2"),
    Fault("pop too early", "[R1C3=3] [pop]", "[pop]", 8, "no contradiction"),
    Fault("pop dropped", "[pop] ", "", 9, "a pop must follow"),
    Fault("pop too late", "[R1C3=3] [pop]", "[R1C3=3] [R1C1=4] [pop]", 9, "a pop must follow"),
    Fault("failed success", "[R1C3=3] [pop]", "[R1C3=3] [success]", 9, "not solved"),
    Fault("no push after pop", "[pop] [push]", "[pop]", 10, "next candidate is pushed"),
    Fault("pop twice", "[pop] [push]", "[pop] [pop] [push]", 10, "no push to undo"),
    Fault("same again", "[push] [R3C1=1]", "[push] [R3C1=3]", 11, "3 has failed in this cell"),
    Fault("elsewhere", "[push] [R3C1=1]", "[push] [R1C1=3]", 11, "at the same cell"),
    Fault("clue overwritten", "[R3C4=3]", "[R1C2=3]", 12, "holds 1 already"),
    Fault("needless guess", "[R3C4=3]", "[push] [R3C4=3]", 12, "so there is no need to guess"),
    Fault("wrong digit", "[R4C3=1]", "[R4C3=3]", 13, "row, column or box holds 3"),
    Fault("pop without need", "[R1C1=3]", "[R1C1=3] [pop]", 17, "no contradiction"),
    Fault("success too early", "[R2C3=3] ", "", 22, "not solved"),
    Fault("no success", "[success]", "[pad]", 23, "padding before the end"),
    Fault("guess at nothing", "[success]", "[push]", 23, "the board is full"),
    Fault("more", "[success]", "[success] [pad] [R2C3=3]", 25, "only padding follows"),
    Fault("success twice", "[success]", "[success] [success]", 24, "only padding follows"),
]
NESTED_FAULTS = [
    Fault("given up", "[R3C3=3] [pop]", "[R3C3=3] [pop] [pop]", 19, "no contradiction"),
    Fault("not given up", "[pop] [pop]", "[pop]", 22, "a pop must follow"),
    Fault("third candidate", "[R4C2=5] [pop]", "[R4C2=5] [pop] [push]", 33, "a pop must follow"),
    Fault("success", "[R4C2=5] [pop]", "[R4C2=5] [pop] [success]", 33, "not solved"),
    Fault("pop of nothing", "[R4C2=5] [pop]", "[R4C2=5] [pop] [pop]", 33, "no push to undo"),
    Fault("too short", "[R4C2=5] [pop]", "[R4C2=5] [pad]", 32, "padding before the end"),
]


@pytest.mark.parametrize(
    ("trace", "geometry", "fault"),
    [(TINY_TRACE, FOUR, fault) for fault in FAULTS]
    + [(NESTED_TRACE, SIX, fault) for fault in NESTED_FAULTS],
    ids=[fault.name for fault in FAULTS + NESTED_FAULTS],
)
def test_a_fault_is_found_where_it_is(trace: str, geometry: Geometry, fault: Fault) -> None:
    words = Vocabulary(geometry)
    assert replay(words.encode(trace), geometry=geometry).valid
    assert fault.old in trace
    tokens = words.encode(trace.replace(fault.old, fault.new, 1))
    judged = replay(tokens, geometry=geometry)
    assert not judged.valid
    assert judged.error is not None
    assert judged.error_at == fault.at
    assert judged.error.startswith(f"token {fault.at}, {words.text(tokens[fault.at])}: ")
    assert fault.reason in judged.error


def test_a_guess_is_needless_at_a_single_of_either_kind() -> None:
    words = Vocabulary(NINE)
    for only_naked, puzzle in ((True, blanked(NINE, 73, 0.7)), (False, blanked(NINE, 1, 0.7))):
        naked, hidden = singles(puzzle)
        assert bool(naked) == only_naked
        assert bool(hidden) != only_naked
        clues = words.placement(np.flatnonzero(puzzle), puzzle[puzzle > 0])
        judged = replay(np.concatenate([clues, [words.clues_end, words.push]]))
        assert judged.error_at == len(clues) + 1
        names = [words.text(placement) for placement in naked | hidden]
        assert any(f"[push]: {name} is forced" in str(judged.error) for name in names)


def test_a_trace_of_clues_alone_has_no_clues_end() -> None:
    judged = replay(Vocabulary(FOUR).encode("[R1C2=1] [R1C4=2]"), geometry=FOUR)
    assert judged.error == "token 2: the trace has no [clues_end]"
    assert judged.error_at == 2


@pytest.mark.parametrize("number", [-1, 734])
def test_numbers_that_are_no_tokens_are_refused(number: int) -> None:
    assert replay(np.array([number])).error == f"token 0, {number}: there is no such token"


@given(geometries, seeds, st.data())
def test_no_token_of_a_smooth_trace_can_be_missing(
    geometry: Geometry, seed: int, data: st.DataObject
) -> None:
    puzzle = blanked(geometry, seed, 0.5)
    traces = record(puzzle[None], seed=seed, length=400, geometry=geometry)
    # Inside a failed branch a placement may well be left out; elsewhere none may.
    if traces.pops[0] == 0:
        dropped = data.draw(st.integers(0, int(traces.lengths[0]) - 2))
        judged = replay(np.delete(traces.tokens[0], dropped), geometry=geometry)
        assert not judged.valid
        assert not judged.solved
        assert judged.error_at is not None
        assert judged.error_at >= dropped
