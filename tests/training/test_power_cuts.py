"""A run that is cut off at any moment, by the power or by a signal, has a whole snapshot."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ronri.training.checkpoints import (
    Checkpoints,
    Score,
    read_snapshot,
)
from snapshots import is_whole, names, no_warning, snapshot


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
