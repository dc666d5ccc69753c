"""Check the shapes that public functions promise, while tests run.

Every module of `ronri` outside the compiled kernels is imported through jaxtyping's hook, so a
wrong dtype or a shape that does not fit fails the test that caused it.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

# Networks in tests are tiny: a second thread would mostly wait for the first.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import settings
from jaxtyping import install_import_hook

if not torch.cuda.is_available():
    # Read when Triton is imported, which some tests do before those of kernels.
    os.environ["TRITON_INTERPRET"] = "1"

if TYPE_CHECKING:
    from command_line import Ronri

SOURCE = Path(__file__).parents[1] / "src"


def _checked_modules() -> list[str]:
    names = []
    for path in (SOURCE / "ronri").rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if "kernels" not in parts and parts[-1] not in ("__init__", "__main__"):
            names.append(".".join(parts))
    return names


install_import_hook(_checked_modules(), "beartype.beartype")

# Every run at home tries new examples; CI tries the same ones, so that a red run means a change.
settings.register_profile(
    "ronri", deadline=None, print_blob=True, derandomize=bool(os.environ.get("CI"))
)
settings.load_profile("ronri")

REAL_DATA = Path(os.environ.get("RONRI_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real puzzle lists; tests that need it are skipped where it does not exist."""
    if not REAL_DATA.is_dir():
        pytest.skip(f"no real puzzle lists in {REAL_DATA}")
    return REAL_DATA


@pytest.fixture
def ronri(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> "Ronri":
    """The command line, with a cache of its own."""
    from command_line import Ronri

    monkeypatch.setenv("RONRI_CACHE", str(tmp_path / "cache"))
    return Ronri(capsys)
