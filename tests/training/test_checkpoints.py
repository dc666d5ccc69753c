"""Snapshots that survive whatever happens to the run, to the disk and to the people in between."""

import json
import os
import shutil
import subprocess
import sys
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


def snapshot(step: int) -> Snapshot:
    """A small snapshot that says twice which step it is of."""
    return Snapshot(step, {"weights.w": torch.full((3, 4), float(step))}, {"elapsed": step / 4})


def is_whole(found: Snapshot) -> bool:
    whole = snapshot(found.step)
    same = torch.equal(found.tensors["weights.w"], whole.tensors["weights.w"])
    return same and found.facts == whole.facts


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def no_warning(message: str) -> None:
    raise AssertionError(message)


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


def whole_by_name(folder: Path) -> bool:
    """Whether every folder that has the name of a snapshot is one."""
    return all(is_whole(read_snapshot(path)) for path in folder.glob("step-*") if not path.suffix)


class Power:
    """Goes off before the n-th change to the disk."""

    class Off(BaseException):
        pass

    def __init__(self, changes: int) -> None:
        self.left = changes

    def spend(self, change: Callable[..., object]) -> Callable[..., object]:
        def spent(*args: object, **kwargs: object) -> object:
            if self.left == 0:
                raise Power.Off
            self.left -= 1
            return change(*args, **kwargs)

        return spent


def survives_power_cuts(
    folder: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], check: Callable
) -> int:
    """Do something with a cut before each of its changes, check each time; how many there were."""
    start = folder.with_name("start")
    shutil.copytree(folder, start)
    for changes in range(100):
        shutil.rmtree(folder)
        shutil.copytree(start, folder)
        power = Power(changes)
        with monkeypatch.context() as patch:
            for name in ("mkdir", "rename", "unlink", "rmdir", "fsync", "open"):
                patch.setattr(os, name, power.spend(getattr(os, name)))
            try:
                act()
            except Power.Off:
                pass
            else:
                return changes
        check()
    raise AssertionError("the deed is never done")


@pytest.mark.parametrize("before", [[], [20], [10, 20], [10, 20, 30], [30]], ids=str)
def test_a_power_cut_between_any_two_changes_leaves_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: list[int]
) -> None:
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    for step in before:
        Checkpoints(run).save(snapshot(step))

    def check() -> None:
        found = Checkpoints(run).latest(no_warning)
        if found is None:
            assert not before
            return
        assert is_whole(found)
        assert found.step >= max(before, default=30)
        assert whole_by_name(run / "checkpoints")
        # The next save finds its way through whatever was left.
        Checkpoints(run).save(snapshot(40))
        assert "step-00000040" in names(run / "checkpoints")
        assert len(names(run / "checkpoints")) <= 2
        assert not any("partial" in name or "old" in name for name in names(run / "checkpoints"))

    assert survives_power_cuts(run, monkeypatch, lambda: Checkpoints(run).save(snapshot(30)), check)


def test_a_power_cut_does_not_lose_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    for step, accuracy in ((10, 0.5), (20, 0.9)):
        Checkpoints(run, keep_best=2).offer(snapshot(step), Score(accuracy, 0.5))

    def offer() -> None:
        # The best one once more, as after a resume, and one that makes the other one fall out.
        Checkpoints(run, keep_best=2).offer(snapshot(20), Score(0.9, 0.5))
        Checkpoints(run, keep_best=2).offer(snapshot(30), Score(0.7, 0.5))

    def check() -> None:
        best = Checkpoints(run, keep_best=2).best()
        assert best is not None
        assert read_snapshot(best).step == 20
        assert is_whole(read_snapshot(best))
        assert whole_by_name(run / "best")
        # The next offer finds its way through whatever was left, and takes nothing along.
        assert Checkpoints(run, keep_best=2).offer(snapshot(40), Score(0.8, 0.5))
        assert [kept.step for kept in Checkpoints(run).ranking()] == [20, 40]
        assert names(run / "best") == ["step-00000020", "step-00000040"]

    assert survives_power_cuts(run, monkeypatch, offer, check)


# A process of its own, so that the writers can be forked from something that has no threads.
KILLER = """
import os, random, signal, sys, time
from pathlib import Path
import torch
from ronri.training.checkpoints import Checkpoints, Score, Snapshot, read_snapshot

folder, chance = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
said = folder / "said"
said.write_text("0")

def write():
    checkpoints = Checkpoints(folder)
    latest = checkpoints.latest(print)
    step = latest.step if latest else 0
    while True:
        # Every third step is saved again, as after a resume.
        step += step % 3 > 0 or chance.random() < 0.5
        size = chance.randrange(1, 200_000)
        snapshot = Snapshot(step, {"w": torch.full((size,), step)}, {"size": size})
        checkpoints.save(snapshot)
        checkpoints.offer(snapshot, Score(step / 1e6, 0.5))
        partial = folder / "saying"
        partial.write_text(str(step))
        partial.rename(said)

for turn in range(20):
    before = said.read_text()
    child = os.fork()
    if child == 0:
        write()
    # Half of them may die before they have come anywhere, the others not, however slow they are.
    while turn % 2 and said.read_text() == before:
        time.sleep(0.001)
    time.sleep(chance.uniform(0.0, 0.08))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    latest = Checkpoints(folder).latest(print)
    promised = int(said.read_text())
    if promised:
        best = read_snapshot(Checkpoints(folder).best())
        assert latest is not None and latest.step >= promised <= best.step
        for found in (latest, best):
            assert found.tensors["w"].tolist() == [found.step] * found.facts["size"]
print("intact after", promised)
"""


def test_killing_the_writer_leaves_an_intact_snapshot(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLER, str(tmp_path), "1"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    # One line only: no warning was needed. And the writers came somewhere.
    words, _, last = done.stdout.strip().rpartition(" ")
    assert words == "intact after"
    assert int(last) > 5


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
