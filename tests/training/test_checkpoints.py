"""Snapshots that survive whatever happens to the run, to the disk and to the people in between."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ronri.training.checkpoints import (
    STATE,
    TENSORS,
    Checkpoints,
    Damaged,
    Kept,
    Score,
    Snapshot,
    read_snapshot,
)
from snapshots import is_whole, names, no_warning, snapshot


def test_a_snapshot_comes_back_as_it_was(tmp_path: Path) -> None:
    base = torch.arange(24.0).reshape(4, 6)
    tied = torch.nn.Parameter(torch.randn(3, 3))
    tensors = {
        "weights.embedding": tied,
        "weights.head": tied,
        "carry.transposed": base.t(),
        "carry.row": base[1],
        "carry.every_other": base[:, ::2],
        "carry.expanded": torch.ones(3).expand(5, 3),
        "carry.halted": torch.tensor([True, False]),
        "optimiser.step": torch.tensor(7),
        "stream.counters": torch.tensor([2**62, -1]),
        "weights.rounded": torch.randn(5).bfloat16(),
        "weights.none": torch.zeros(0, 3),
        "random.cpu": torch.get_rng_state(),
    }
    facts = {"recipe": {"lr": 0.1, "names": ["a", "ü"]}, "random": [1, 2**63], "elapsed": 1 / 3}
    Checkpoints(tmp_path).save(Snapshot(5, tensors, facts))
    found = Checkpoints(tmp_path).latest(no_warning)
    assert found is not None
    assert (found.step, found.facts) == (5, facts)
    assert found.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        torch.testing.assert_close(found.tensors[name], tensor.detach(), rtol=0, atol=0)
        assert found.tensors[name].device.type == "cpu"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_tensors_of_a_gpu_come_back_on_the_cpu(tmp_path: Path) -> None:
    tensor = torch.randn(4, 3, device="cuda").t()
    Checkpoints(tmp_path).save(Snapshot(1, {"w": tensor}, {}))
    found = Checkpoints(tmp_path).latest(no_warning)
    assert found is not None
    torch.testing.assert_close(found.tensors["w"], tensor.cpu(), rtol=0, atol=0)


def test_the_newest_two_stay(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    assert checkpoints.latest(no_warning) is None
    for step in (10, 20, 30):
        checkpoints.save(snapshot(step))
    assert names(tmp_path / "checkpoints") == ["step-00000020", "step-00000030"]
    found = checkpoints.latest(no_warning)
    assert found is not None
    assert found.step == 30
    assert is_whole(found)


def test_the_same_step_is_replaced(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(Snapshot(10, {"other": torch.zeros(2)}, {}))
    checkpoints.save(snapshot(10))
    assert names(tmp_path / "checkpoints") == ["step-00000010"]
    found = checkpoints.latest(no_warning)
    assert found is not None
    assert is_whole(found)


def test_the_new_one_counts_before_the_one_it_replaces(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(Snapshot(10, {"other": torch.zeros(2)}, {}))
    folder = tmp_path / "checkpoints" / "step-00000010"
    aside = folder.rename(folder.with_name("step-00000010.old"))
    found = checkpoints.latest(no_warning)
    assert found is not None
    assert found.tensors.keys() == {"other"}
    shutil.copytree(aside, tmp_path / "aside")
    checkpoints.save(snapshot(10))
    shutil.copytree(tmp_path / "aside", aside)
    found = checkpoints.latest(no_warning)
    assert found is not None
    assert is_whole(found)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def overwrite(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def drop_field(path: Path) -> None:
    fields = json.loads(path.read_text())
    del fields["facts"]
    path.write_text(json.dumps(fields))


DAMAGE: list[tuple[str, Callable[[Path], None], str]] = [
    (TENSORS, Path.unlink, "is missing"),
    (TENSORS, flip, "does not match its checksum"),
    (TENSORS, cut, "does not match its checksum"),
    (TENSORS, make_folder, "cannot be read"),
    (STATE, Path.unlink, "is missing"),
    (STATE, cut, "is not the JSON it should be"),
    (STATE, lambda path: overwrite(path, b"\xff\x00"), "is not the JSON it should be"),
    (STATE, lambda path: overwrite(path, b"[]"), "is not the JSON it should be"),
    (STATE, lambda path: overwrite(path, b"{}"), "is not the JSON it should be"),
    (STATE, drop_field, "does not have the fields"),
    (STATE, make_folder, "cannot be read"),
]


@pytest.mark.parametrize(("file", "damage", "words"), DAMAGE)
def test_every_damage_is_named_and_the_one_before_is_used(
    tmp_path: Path, file: str, damage: Callable[[Path], None], words: str
) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(snapshot(10))
    checkpoints.save(snapshot(20))
    older, newer = (tmp_path / "checkpoints" / f"step-000000{step}" for step in (10, 20))
    damage(newer / file)
    with pytest.raises(Damaged, match=words):
        read_snapshot(newer)
    warnings: list[str] = []
    found = checkpoints.latest(warnings.append)
    assert found is not None
    assert found.step == 10
    assert is_whole(found)
    (warning,) = warnings
    assert warning.startswith(str(newer / file))
    assert words in warning
    assert warning.endswith(f"using {older} instead")
    assert "\n" not in warning
    # The run goes on from the intact one. The damaged one is not what it falls back to next time.
    checkpoints.save(snapshot(30))
    assert names(tmp_path / "checkpoints") == ["step-00000010", "step-00000030"]


def test_a_future_that_was_given_up_does_not_come_back(tmp_path: Path) -> None:
    for step in (10, 20):
        Checkpoints(tmp_path).save(snapshot(step))
    flip(tmp_path / "checkpoints" / "step-00000020" / TENSORS)
    Checkpoints(tmp_path).save(snapshot(15))
    assert names(tmp_path / "checkpoints") == ["step-00000010", "step-00000015"]


def test_nothing_intact_is_an_error_not_a_new_start(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    for step in (10, 20):
        checkpoints.save(snapshot(step))
        flip(tmp_path / "checkpoints" / f"step-{step:08d}" / TENSORS)
    with pytest.raises(ValueError, match=r"step-00000020.*checksum.*step-00000010.*checksum"):
        checkpoints.latest(no_warning)


def test_another_format_is_refused_with_both_versions(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    for step in (10, 20):
        checkpoints.save(snapshot(step))
    state = tmp_path / "checkpoints" / "step-00000020" / STATE
    state.write_text(json.dumps(json.loads(state.read_text()) | {"format": 7}))
    with pytest.raises(ValueError, match="has format 7, this Ronri reads format 1"):
        checkpoints.latest(no_warning)


OFFERS = st.lists(
    st.tuples(
        st.integers(1, 8),
        st.sampled_from([0.0, 0.25, 0.5, 1.0]),
        st.sampled_from([0.0, 0.5, 1.0]),
        st.booleans(),
    ),
    max_size=12,
)


@settings(max_examples=40)
@given(OFFERS, st.integers(0, 4))
def test_the_best_are_kept_in_order(
    offers: list[tuple[int, float, float, bool]], keep: int
) -> None:
    with TemporaryDirectory() as folder:
        checkpoints = Checkpoints(Path(folder), keep_best=keep)
        expected: dict[int, Score] = {}
        for step, puzzles, cells, restart in offers:
            if restart:
                checkpoints = Checkpoints(Path(folder), keep_best=keep)
            score = Score(puzzles, cells)
            ranked = sorted(
                (expected | {step: score}).items(),
                key=lambda item: (item[1].puzzle_accuracy, item[1].cell_accuracy, item[0]),
                reverse=True,
            )
            expected = dict(ranked[:keep])
            assert checkpoints.offer(snapshot(step), score) == (step in expected)
            ranking = checkpoints.ranking()
            assert [(kept.step, kept.score) for kept in ranking] == list(expected.items())
            assert checkpoints.best() == (ranking[0].folder if ranking else None)
            assert all(is_whole(read_snapshot(kept.folder)) for kept in ranking)
        if expected:
            assert len(names(Path(folder) / "best")) == len(expected)


def test_a_better_run_replaces_what_was_best(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep_best=2)
    offered = [checkpoints.offer(snapshot(s), Score(a, 0.5)) for s, a in ((1, 0.2), (2, 0.6))]
    assert offered == [True, True]
    assert checkpoints.offer(snapshot(3), Score(0.1, 0.9)) is False
    assert checkpoints.offer(snapshot(4), Score(0.3, 0.5)) is True
    best = tmp_path / "best"
    assert names(best) == ["step-00000002", "step-00000004"]
    assert checkpoints.ranking()[0] == Kept(Score(0.6, 0.5), 2, best / "step-00000002")


def test_a_best_one_that_lost_its_score_has_no_place(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    for step in (1, 2):
        checkpoints.offer(snapshot(step), Score(step / 10, 0.5))
    (tmp_path / "best" / "step-00000002" / STATE).unlink()
    assert checkpoints.best() == tmp_path / "best" / "step-00000001"
    checkpoints.offer(snapshot(3), Score(0.05, 0.5))
    assert names(tmp_path / "best") == ["step-00000001", "step-00000003"]


def test_a_folder_can_be_copied_and_read_elsewhere(tmp_path: Path) -> None:
    Checkpoints(tmp_path).offer(snapshot(3), Score(1.0, 1.0))
    best = Checkpoints(tmp_path).best()
    assert best is not None
    shutil.copytree(best, tmp_path / "mine")
    assert is_whole(read_snapshot(tmp_path / "mine"))
