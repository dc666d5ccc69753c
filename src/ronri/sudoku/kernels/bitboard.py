"""The exact solver for 9x9 boards, on bit boards.

A board is nine digits x three bands of 27 bits: bit `9 * row_in_band + column` of word
`3 * digit + band` says that the digit may still stand there. Inside one band a digit must choose
one mini-row (three cells in a row and a box) per row and per box: a permutation of three. So
hidden singles and locked candidates, in rows, columns and boxes alike, all come out of one table
of 512 entries that knows which mini-rows (or, across bands, mini-columns) belong to any possible
permutation.

State is `int32[33]`: 27 candidate words, three words of decided cells, three of cells with exactly
two candidates. `seen` holds the candidate words as they were when their digit was last settled.
"""

import numpy as np

from ronri.sudoku.geometry import NINE
from ronri.sudoku.kernels import chance
from ronri.sudoku.kernels.bits import lowest, popcount
from ronri.sudoku.kernels.compiled import kernel

ALL_27 = (1 << 27) - 1
WORDS, DECIDED, PAIRS, STATE = 27, 27, 30, 33
# On one path through the search every open branch has placed a digit.
MAX_DEPTH = 82


def _matching_table() -> np.ndarray:
    """For each 3x3 bit matrix, the union of all permutation matrices inside it."""
    permutations = []
    for columns in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        permutations.append(sum(1 << (3 * row + column) for row, column in enumerate(columns)))
    table = np.zeros(512, np.int32)
    for matrix in range(512):
        for permutation in permutations:
            if permutation & matrix == permutation:
                table[matrix] |= permutation
    return table


def _spread_table(matching: np.ndarray) -> np.ndarray:
    """The same by mini-rows, each widened to its three cells: a mask of 27 bits."""
    table = np.zeros(512, np.int32)
    for matrix in range(512):
        for minirow in range(9):
            if matching[matrix] >> minirow & 1:
                table[matrix] |= 7 << (3 * minirow)
    return table


_BITS = np.arange(512)
# Which columns (9 bits), or which minis (9 bits), can hold the digit in a complete placement.
_MATCHING = _matching_table()
_CELLS_MATCHING = _spread_table(_MATCHING)
# Nine cells of a row to the three mini-rows they touch.
_MINIS = (((_BITS & 7) > 0) * 1 + ((_BITS >> 3 & 7) > 0) * 2 + ((_BITS >> 6) > 0) * 4).astype(
    np.int32
)
# Nine cells of a row: themselves if there is one, nothing otherwise.
_SINGLE = np.where((_BITS & (_BITS - 1)) == 0, _BITS, 0).astype(np.int32)


def _peer_words() -> np.ndarray:
    """The peers of each cell as three words, one a band."""
    words = np.zeros((81, 3), np.int32)
    for cell, peers in enumerate(NINE.peers):
        for peer in peers:
            words[cell, peer // 27] |= 1 << int(peer % 27)
    return words


_PEERS = _peer_words()


@kernel
def match_rows(word):
    """Keep the cells of a band that fit some choice of one mini-row per row and box."""
    minis = _MINIS[word & 511] | _MINIS[(word >> 9) & 511] << 3 | _MINIS[(word >> 18) & 511] << 6
    return word & _CELLS_MATCHING[minis]


@kernel
def singles(word):
    """The cells that are alone in their row."""
    return _SINGLE[word & 511] | _SINGLE[(word >> 9) & 511] << 9 | _SINGLE[(word >> 18) & 511] << 18


@kernel
def alone_in_row(word, bit):
    """Clear the row of `bit`, but for `bit`."""
    if bit < 1 << 9:
        row = 511
    elif bit < 1 << 18:
        row = 511 << 9
    else:
        row = 511 << 18
    return word & (~row | bit)


@kernel
def settle_digit(state, seen, k):
    """Settle one digit against rows, columns and boxes; false if it has no place left."""
    a, b, c = np.int64(state[k]), np.int64(state[k + 1]), np.int64(state[k + 2])
    while True:
        a_rows, b_rows, c_rows = match_rows(a), match_rows(b), match_rows(c)
        if a_rows == 0 or b_rows == 0 or c_rows == 0:
            return False
        # Columns each band can use; then, stack by stack, one column per band.
        x = (a_rows | a_rows >> 9 | a_rows >> 18) & 511
        y = (b_rows | b_rows >> 9 | b_rows >> 18) & 511
        z = (c_rows | c_rows >> 9 | c_rows >> 18) & 511
        p = _MATCHING[(x & 7) | (y & 7) << 3 | (z & 7) << 6]
        q = _MATCHING[(x >> 3 & 7) | (y & 56) | (z & 56) << 3]
        r = _MATCHING[(x >> 6) | (y >> 3 & 56) | (z & 448)]
        # One multiplication copies nine columns into the three rows of a band.
        a_new = a_rows & (((p & 7) | (q & 7) << 3 | (r & 7) << 6) * 0x40201)
        b_new = b_rows & (((p >> 3 & 7) | (q & 56) | (r & 56) << 3) * 0x40201)
        c_new = c_rows & (((p >> 6) | (q >> 3 & 56) | (r & 448)) * 0x40201)
        # Columns that changed nothing leave the rows as they are: settled.
        if a_new == a_rows and b_new == b_rows and c_new == c_rows:
            break
        a, b, c = a_new, b_new, c_new
        if a == 0 or b == 0 or c == 0:
            return False
    a, b, c = a_rows, b_rows, c_rows
    state[k] = seen[k] = a
    state[k + 1] = seen[k + 1] = b
    state[k + 2] = seen[k + 2] = c
    # A digit alone in its row is decided: no other digit may stand there.
    x = singles(a) & ~np.int64(state[DECIDED])
    y = singles(b) & ~np.int64(state[DECIDED + 1])
    z = singles(c) & ~np.int64(state[DECIDED + 2])
    if x | y | z:
        state[DECIDED] |= x
        state[DECIDED + 1] |= y
        state[DECIDED + 2] |= z
        for other in range(0, WORDS, 3):
            if other != k:
                state[other] &= ~x
                state[other + 1] &= ~y
                state[other + 2] &= ~z
    return True


@kernel
def settle_cells(state):
    """Place digits in cells that have one candidate left. 0: contradiction, 1: quiet, 2: placed."""
    answer = 1
    for band in range(3):
        once, twice, thrice = np.int64(0), np.int64(0), np.int64(0)
        for k in range(band, WORDS, 3):
            word = np.int64(state[k])
            thrice |= twice & word
            twice |= once & word
            once |= word
        if once != ALL_27:
            return 0
        state[PAIRS + band] = twice & ~thrice
        naked = ~twice & ALL_27 & ~np.int64(state[DECIDED + band])
        if naked:
            answer = 2
            for k in range(band, WORDS, 3):
                mine = state[k] & naked
                while mine:
                    bit = mine & -mine
                    mine ^= bit
                    state[k] = alone_in_row(state[k], bit)
    return answer


@kernel
def settle(state, seen):
    """Follow every consequence to the end; false at a contradiction."""
    while True:
        moved = True
        while moved:
            moved = False
            for k in range(0, WORDS, 3):
                if (
                    state[k] != seen[k]
                    or state[k + 1] != seen[k + 1]
                    or state[k + 2] != seen[k + 2]
                ):
                    moved = True
                    if not settle_digit(state, seen, k):
                        return False
        quiet = settle_cells(state)
        if quiet != 2:
            return quiet == 1


@kernel
def start(puzzle, state, seen):
    """Lay out the clues."""
    state[:WORDS] = ALL_27
    state[WORDS:] = 0
    seen[:] = ALL_27
    for cell in range(81):
        if puzzle[cell]:
            place(state, cell // 27, 1 << (cell % 27), 3 * (np.int64(puzzle[cell]) - 1))


@kernel
def place(state, band, bit, k):
    """Put a digit (by its first word `k`) on a cell: gone from its row, and the cell is taken."""
    for other in range(band, WORDS, 3):
        state[other] &= ~bit
    state[k + band] = alone_in_row(state[k + band] | bit, bit)


@kernel
def solved(state):
    return state[DECIDED] & state[DECIDED + 1] & state[DECIDED + 2] == ALL_27


@kernel
def choose(state):
    """Where to guess, as `9 * cell + digit`; `search.choose` is the same rule on any geometry.

    Among cells with two candidates, the one whose digits are most at home among its peers: each
    place a digit would lose counts one, and four in a cell with two candidates, which it would
    decide. Without such a cell, the first with the fewest candidates. Ties: the first cell. Then
    the lower digit.
    """
    best, most = -1, -1
    pairs_0, pairs_1, pairs_2 = state[PAIRS], state[PAIRS + 1], state[PAIRS + 2]
    for band in range(3):
        pairs = np.int64(state[PAIRS + band])
        while pairs:
            bit = pairs & -pairs
            pairs ^= bit
            cell = 27 * band + lowest(bit)
            peers_0, peers_1, peers_2 = _PEERS[cell, 0], _PEERS[cell, 1], _PEERS[cell, 2]
            home, first = 0, -1
            for k in range(0, WORDS, 3):
                if state[k + band] & bit:
                    if first < 0:
                        first = k // 3
                    a, b, c = state[k] & peers_0, state[k + 1] & peers_1, state[k + 2] & peers_2
                    # Words of 27 bits: two fit into one 64-bit population count.
                    paired = popcount((a & pairs_0) | (b & pairs_1) << 32) + popcount(c & pairs_2)
                    home += popcount(a | b << 32) + popcount(c) + 3 * paired
            if home > most:
                most, best = home, 9 * cell + first
    if best >= 0:
        return best
    fewest = 10
    for cell in range(81):
        band, bit = cell // 27, 1 << (cell % 27)
        if state[DECIDED + band] & bit:
            continue
        count, first = 0, -1
        for k in range(band, WORDS, 3):
            if state[k] & bit:
                count += 1
                if first < 0:
                    first = k // 3
        if count < fewest:
            fewest, best = count, 9 * cell + first
    return best


@kernel
def choose_at_random(state, random):
    """A random cell among those with the fewest candidates, and a random candidate of it."""
    fewest, ties, best = 10, 0, -1
    for cell in range(81):
        band, bit = cell // 27, 1 << (cell % 27)
        if state[DECIDED + band] & bit:
            continue
        count = 0
        for k in range(band, WORDS, 3):
            count += 1 if state[k] & bit else 0
        if count <= fewest:
            ties = ties + 1 if count == fewest else 1
            fewest = count
            if chance.below(random, ties) == 0:
                best = cell
    band, bit = best // 27, 1 << (best % 27)
    skip = chance.below(random, fewest)
    for k in range(band, WORDS, 3):
        if state[k] & bit:
            if skip == 0:
                return 9 * best + k // 3
            skip -= 1
    return -1


@kernel
def read(state, grid):
    for k in range(WORDS):
        word = np.int64(state[k])
        while word:
            grid[27 * (k % 3) + lowest(word)] = k // 3 + 1
            word &= word - 1


@kernel
def search(state, seen, stack, limit, grids, random):
    """As `search.search`, with the same guesses."""
    solutions = guesses = first_guesses = depth = 0
    alive = settle(state, seen)
    while True:
        if alive and solved(state):
            if solutions < len(grids):
                read(state, grids[solutions])
            if solutions == 0:
                first_guesses = guesses
            solutions += 1
            alive = False
            if solutions >= limit:
                return solutions, first_guesses
        if alive:
            choice = choose_at_random(state, random) if len(random) else choose(state)
            cell, k = choice // 9, 3 * (choice % 9)
            band, bit = cell // 27, 1 << (cell % 27)
            guesses += 1
            stack[depth, :STATE] = state
            stack[depth, STATE] = k + band
            stack[depth, STATE + 1] = bit
            depth += 1
            place(state, band, bit, k)
        else:
            if depth == 0:
                return solutions, first_guesses if solutions else guesses
            depth -= 1
            # What is left to try: the same settled board without the candidate that failed.
            state[:] = stack[depth, :STATE]
            seen[:] = state[:WORDS]
            state[stack[depth, STATE]] ^= stack[depth, STATE + 1]
        alive = settle(state, seen)


@kernel
def solve_batch(puzzles, limit, solutions, counts, guesses):
    state, seen = np.empty(STATE, np.int32), np.empty(WORDS, np.int32)
    stack = np.empty((MAX_DEPTH, STATE + 2), np.int32)
    deterministic = np.empty(0, np.uint64)
    for i in range(len(puzzles)):
        start(puzzles[i], state, seen)
        counts[i], guesses[i] = search(
            state, seen, stack, limit, solutions[i : i + 1], deterministic
        )
