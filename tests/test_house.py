"""The shape of the house: which way imports point, and what importing does."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

# Floors from the ground up; a module imports from its own floor and from those below.
FLOORS = (
    "ronri.sudoku",
    "ronri.data",
    "ronri.terminal",
    "ronri.commands",
    "ronri.cli",
    "ronri.__main__",
)
MODULES = sorted((SOURCE / "ronri").rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            module = node.module or ""
            found.add(module)
            found.update(f"{module}.{alias.name}" for alias in node.names)
    return found


def floor_of(module: str) -> int | None:
    for height, floor in enumerate(FLOORS):
        if module == floor or module.startswith(floor + "."):
            return height
    return None


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_down(path: Path) -> None:
    name, imported = name_of(path), imports_of(path)
    own = floor_of(name)
    if name == "ronri":
        assert not any(module.startswith("ronri") for module in imported)
        return
    assert own is not None, f"{name} stands on no floor: add it to FLOORS"
    for module in imported:
        other = floor_of(module)
        assert other is None or other <= own, f"{name} imports {module} from above"
    if name.startswith("ronri.sudoku"):
        assert not any(module.split(".")[0] == "torch" for module in imported)
    else:
        # Random numbers are for everyone; the other kernels trust what they are given.
        inner = {module for module in imported if module.startswith("ronri.sudoku.kernels.")}
        inner = {module for module in inner if not module.startswith("ronri.sudoku.kernels.chance")}
        assert not inner, f"{name} reaches past the public functions: {inner}"


def modules_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_help_imports_nothing_heavy() -> None:
    help_ = """
import ronri.cli
try:
    ronri.cli.main(["--help"])
except SystemExit as end:
    assert end.code == 0
"""
    loaded = modules_after(help_)
    assert "tyro" in loaded
    assert not loaded & {"torch", "numba", "numpy", "jaxtyping", "rich.progress"}


def test_importing_compiles_nothing() -> None:
    code = """
import ronri.data.sources, ronri.data.describe
import ronri.sudoku.generate as g, ronri.sudoku.kernels.digging as d
assert not d.dig_batch.signatures
"""
    assert "torch" not in modules_after(code)
