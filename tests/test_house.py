"""The shape of the house: which way imports point, and what importing does."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from boards import PUZZLE

SOURCE = Path(__file__).parents[1] / "src"

# Floors from the ground up; a module imports from its own floor and from those below.
FLOORS = (
    "ronri.sudoku",
    "ronri.data",
    "ronri.recipe",
    "ronri.nn",
    "ronri.reasoner",
    "ronri.thinking",
    "ronri.registry",
    "ronri.reasoners",
    "ronri.loading",
    "ronri.evaluation",
    "ronri.training",
    "ronri.terminal",
    "ronri.commands",
    "ronri.cli",
    "ronri.__main__",
)
MODULES = sorted((SOURCE / "ronri").rglob("*.py"))
FOLDERS = sorted(path.parent.name for path in (SOURCE / "ronri/reasoners").glob("*/__init__.py"))
# Where reasoners are met through the contract alone, whatever they are called.
BLIND = ("data", "nn", "reasoner", "thinking", "registry", "loading", "evaluation", "training")


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        found |= named_by(node)
    return found


def imports_on_import(path: Path) -> set[str]:
    """What a module imports when it is imported: nothing in functions or for type checkers."""
    found: set[str] = set()
    open_nodes: list[ast.AST] = [ast.parse(path.read_text())]
    while open_nodes:
        node = open_nodes.pop()
        found |= named_by(node)
        if isinstance(node, ast.FunctionDef):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        open_nodes += ast.iter_child_nodes(node)
    return found


def named_by(node: ast.AST) -> set[str]:
    """The modules, and the names in them, that an import statement names."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"relative import: {ast.unparse(node)}"
        module = node.module or ""
        return {module} | {f"{module}.{alias.name}" for alias in node.names}
    return set()


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
        assert not any(module.startswith("ronri") for module in imports_on_import(path))
        return
    assert own is not None, f"{name} stands on no floor: add it to FLOORS"
    if name == "ronri.registry":
        # It looks into the folder of reasoners without knowing what is in there.
        imported.remove("ronri.reasoners")
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


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nobody_imports_a_reasoner_but_itself(path: Path) -> None:
    own = name_of(path).removeprefix("ronri.reasoners.").split(".")[0]
    for module in imports_of(path):
        if module.startswith("ronri.reasoners."):
            assert module.split(".")[2] == own, f"{name_of(path)} imports {module}"


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in MODULES
        if floor_of(name_of(path)) in [floor_of(f"ronri.{b}") for b in BLIND]
    ],
    ids=name_of,
)
def test_nobody_names_a_reasoner(path: Path) -> None:
    """No `if name == ...`: a new reasoner is a new folder and nothing else."""
    for node in ast.walk(ast.parse(path.read_text())):
        named = isinstance(node, ast.Constant) and node.value in FOLDERS
        assert not named, f"{name_of(path)}, line {getattr(node, 'lineno', 0)}: {ast.unparse(node)}"


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


SOLVE = f"""
import ronri.cli
assert ronri.cli.main(["solve", {PUZZLE!r}]) == 0
"""


def test_a_network_solves_a_puzzle_with_no_more_than_it_needs() -> None:
    """Numba takes half a second to be imported: whoever counts solutions does so elsewhere."""
    loaded = modules_after(SOLVE)
    assert "torch" in loaded
    assert not loaded & {"numba", "torch._meta_registrations", "torch._dynamo"}


def test_what_solving_leaves_out_of_torch_can_be_had_afterwards() -> None:
    """A shape that torch knows from there, and a compiled function."""
    code = f"""{SOLVE}
import torch
import torch._meta_registrations
assert torch.linalg.eig(torch.empty(3, 3, device="meta"))[1].shape == (3, 3)
compiled = torch.compile(lambda x: torch.fft.fft(x).abs() + 1, backend="aot_eager")
assert compiled(torch.zeros(4)).eq(1).all()
"""
    assert "torch._meta_registrations" in modules_after(code)


def test_reasoners_are_known_without_torch() -> None:
    """Configs and recipes are data: help and tables do not wait for what computes."""
    code = """
from ronri import registry
assert len([make() for make in registry.recipes().values()]) > 1
assert all(entry.config() for entry in registry.reasoners().values())
"""
    loaded = modules_after(code)
    assert "ronri.reasoners" in loaded
    assert "torch" not in loaded
    assert {name for name in loaded if name.startswith("ronri.reasoners.")} >= {
        f"ronri.reasoners.{folder}" for folder in FOLDERS
    }


def test_the_package_itself_loads_nothing() -> None:
    loaded = modules_after("import ronri")
    assert {name for name in loaded if name.startswith("ronri")} == {"ronri"}
