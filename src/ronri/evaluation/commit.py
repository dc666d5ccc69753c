"""Which version of the source a result comes from."""

import subprocess
from functools import cache
from pathlib import Path

import ronri


@cache
def commit() -> str | None:
    """The commit of the Ronri that is running; None where it does not run from a checkout."""
    return commit_of(Path(ronri.__file__))


def commit_of(file: Path) -> str | None:
    """The commit of the repository that keeps a file, marked if anything was changed since.

    A file may lie in a repository that does not keep it, as an installed package does that stands
    in the folder of somebody else's project: it has no commit.
    """
    if _git(file.parent, "ls-files", "--error-unmatch", file.name) is None:
        return None
    head = _git(file.parent, "rev-parse", "HEAD")
    changed = _git(file.parent, "status", "--porcelain", "--untracked-files=no")
    return f"{head}-dirty" if head and changed else head


def _git(folder: Path, *arguments: str) -> str | None:
    """What git answers; None where it says no, or is not there."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
