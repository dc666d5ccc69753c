"""A reasoner's own readings (`Reasoner.diagnose`) of more puzzles than fit at a time."""

from ronri.data.stream import Batch
from ronri.evaluation.chunks import in_chunks
from ronri.reasoner import Reasoner

# Puzzles read together. How a representation spreads can be told of many puzzles only: a rank, say,
# is at most their number.
TOGETHER = 1024


def read(reasoner: Reasoner, batch: Batch, *, max_rows: int = TOGETHER) -> dict[str, float]:
    """Means over puzzles of what is read of each chunk of them; nothing, of no puzzles."""
    n = len(batch.keys)

    def look(part: slice) -> tuple[int, dict[str, float]]:
        some = Batch(batch.clues[part], batch.solutions[part], batch.keys[part])
        return len(some.keys), reasoner.diagnose(some)

    total: dict[str, float] = {}
    for count, readings in in_chunks(look, n, rows_each=1, max_rows=max_rows):
        for name, value in readings.items():
            total[name] = total.get(name, 0.0) + value * count / n
    return total
