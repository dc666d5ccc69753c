"""Which reasoners there are: the folders of the house, and what other packages offer."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ronri.reasoners
from ronri import registry


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """Reasoners are looked for once; here they come and go."""
    registry.reasoners.cache_clear()
    yield
    registry.reasoners.cache_clear()


def offer(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package that offers a reasoner under a name."""
    module = f"offers_{name}"
    (folder / f"{module}.py").write_text(
        "from ronri.reasoners.exact import Config, build\n"
        "from ronri.registry import Entry\n"
        "REASONER = Entry(summary='Theirs.', config=Config, build=build)\n"
    )
    facts = folder / f"{module}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{name} = {module}:REASONER\n")
    monkeypatch.syspath_prepend(folder)


def test_every_folder_is_a_reasoner() -> None:
    (folder,) = (Path(path) for path in ronri.reasoners.__path__)
    folders = {path.parent.name for path in folder.glob("*/__init__.py")}
    assert folders <= registry.reasoners().keys()
    assert {"exact", "encoder", "trm"} <= folders
    for name in folders:
        entry = registry.find(name)
        assert entry is sys.modules[f"ronri.reasoners.{name}"].REASONER


def test_recipes_have_names_of_their_own() -> None:
    every = [name for entry in registry.reasoners().values() for name in entry.recipes]
    assert len(every) == len(set(every))
    assert registry.recipes().keys() == set(every)
    for name, make in registry.recipes().items():
        assert registry.recipe(name) == make()
        # What belongs to a reasoner is called like it.
        assert name.split("-")[0] == make().reasoner


def test_reasoners_without_recipes_do_not_learn() -> None:
    assert registry.find("trm").learns
    assert not registry.find("exact").learns


def test_unknown_names_tell_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"'nobody'; there are .*encoder, enso, exact.*trm"):
        registry.find("nobody")
    with pytest.raises(ValueError, match=r"no recipe 'exact'; there are .*trm-mini4"):
        registry.recipe("exact")


def test_a_package_may_offer_a_reasoner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "newcomer" not in registry.reasoners()
    offer(tmp_path, "newcomer", monkeypatch)
    registry.reasoners.cache_clear()
    assert registry.find("newcomer").summary == "Theirs."


def test_a_name_cannot_be_taken_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(tmp_path, "trm", monkeypatch)
    with pytest.raises(ValueError, match=r"two reasoners are called trm.*offers_trm"):
        registry.reasoners()
