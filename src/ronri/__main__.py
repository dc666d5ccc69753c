"""`python -m ronri` is `ronri`."""

from ronri.cli import run

run()
