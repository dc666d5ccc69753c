"""Random numbers that are the same everywhere: SplitMix64 in integer arithmetic alone.

A generator is a `uint64[1]` array. `fork` makes an independent one from a seed and an index, so
the i-th item of a batch depends on (seed, i) and on nothing else: not on threads, not on batch
size, not on the versions of any library.
"""

import numpy as np

from ronri.sudoku.kernels.compiled import kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_LOW_32 = np.uint64(0xFFFFFFFF)
_27, _30, _31, _32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)


def as_seed(seed: int) -> np.uint64:
    """A number people chose, as the kernels want it."""
    if not 0 <= seed < 2**64:
        raise ValueError(f"a seed lies between 0 and 2**64 - 1; {seed} does not")
    return np.uint64(seed)


@kernel
def scramble(x):
    """SplitMix64's output function: a bijection on 64 bits that mixes them well."""
    x = np.uint64(x)
    x = (x ^ (x >> _30)) * _MIX_1
    x = (x ^ (x >> _27)) * _MIX_2
    return x ^ (x >> _31)


@kernel
def fork(seed, index):
    """A fresh generator for item `index` under `seed`."""
    state = np.empty(1, np.uint64)
    state[0] = scramble(scramble(np.uint64(seed) + _GOLDEN) ^ scramble(np.uint64(index) * _GOLDEN))
    return state


@kernel
def draw(state):
    """The next 64 random bits."""
    state[0] += _GOLDEN
    return scramble(state[0])


@kernel
def below(state, bound):
    """A random integer in [0, bound), by Lemire's multiplication; bound is far below 2**32."""
    return np.int64(((draw(state) & _LOW_32) * np.uint64(bound)) >> _32)


@kernel
def shuffle(state, items, count):
    """Shuffle the first `count` items in place."""
    for i in range(count - 1, 0, -1):
        j = below(state, i + 1)
        items[i], items[j] = items[j], items[i]
