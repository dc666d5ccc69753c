"""Random numbers on the device that depend on a key and on nothing else.

The torch twin of `sudoku/kernels/chance.py`: SplitMix64 in the wrapping 64-bit integers that every
device has. A key is an int64; the same key gives the same numbers on every device, in any batch,
in any process. No generator is carried along, so there is no state to lose.
"""

import math

import torch
from jaxtyping import Float32, Int64
from torch import Tensor


def _signed(x: int) -> int:
    return x - 2**64 if x >= 2**63 else x


_GOLDEN = _signed(0x9E3779B97F4A7C15)
_GOLDEN_INVERSE = _signed(pow(0x9E3779B97F4A7C15, -1, 2**64))
_MIX_1 = _signed(0xBF58476D1CE4E5B9)
_MIX_2 = _signed(0x94D049BB133111EB)
# What is left of 64 bits after a shift to the right: integers are signed here, so their sign
# would be shifted in.
_LOW_34, _LOW_37, _LOW_33 = 2**34 - 1, 2**37 - 1, 2**33 - 1


def scramble(x: Int64[Tensor, "*shape"]) -> Int64[Tensor, "*shape"]:
    """SplitMix64's output function: a bijection on 64 bits that mixes them well."""
    x = (x ^ ((x >> 30) & _LOW_34)) * _MIX_1
    x = (x ^ ((x >> 27) & _LOW_37)) * _MIX_2
    return x ^ ((x >> 31) & _LOW_33)


def fork(
    keys: Int64[Tensor, "*shape"], index: int | Int64[Tensor, "*shape"]
) -> Int64[Tensor, "*shape"]:
    """Fresh keys: for each key the one that belongs to `index`."""
    if isinstance(index, int):
        return scramble(scramble(keys + _GOLDEN) ^ scramble_int(index * _GOLDEN))
    return scramble(scramble(keys + _GOLDEN) ^ scramble(index * _GOLDEN))


def scramble_int(x: int) -> int:
    """`scramble` of a Python integer, as a signed one."""
    x %= 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return _signed(x ^ (x >> 31))


def draws(keys: Int64[Tensor, "rows"], count: int) -> Int64[Tensor, "rows count"]:
    """`count` times 64 random bits for each key."""
    # That is, key + step * _GOLDEN. A compiler that counts in 32 bits could not write the product
    # of a count and of so large a number.
    steps = torch.arange(1, count + 1, device=keys.device)
    return scramble((keys[:, None] * _GOLDEN_INVERSE + steps) * _GOLDEN)


def uniform(keys: Int64[Tensor, "rows"], count: int) -> Float32[Tensor, "rows count"]:
    """`count` numbers in [0, 1) for each key, on a grid of 2**-24: exact in float32."""
    return ((draws(keys, count) >> 40) & (2**24 - 1)).to(torch.float32) * 2.0**-24


def below(keys: Int64[Tensor, "rows"], bounds: Int64[Tensor, "rows"]) -> Int64[Tensor, "rows"]:
    """One number in [0, bound) for each key; bounds stay below 2**31."""
    return (((draws(keys, 1)[:, 0] >> 32) & (2**32 - 1)) * bounds >> 32) & (2**32 - 1)


def permutations(keys: Int64[Tensor, "rows"], length: int) -> Int64[Tensor, "rows length"]:
    """A random order of 0 .. length - 1 for each key."""
    return draws(keys, length).argsort(dim=1)


def normal(keys: Int64[Tensor, "rows"], count: int) -> Float32[Tensor, "rows count"]:
    """`count` standard normal numbers for each key, by Box and Muller."""
    half = (count + 1) // 2
    first, second = uniform(keys, 2 * half).split(half, dim=1)
    radius = torch.sqrt(-2.0 * torch.log1p(-first))
    angle = 2 * math.pi * second
    return torch.cat([radius * torch.cos(angle), radius * torch.sin(angle)], dim=1)[:, :count]
