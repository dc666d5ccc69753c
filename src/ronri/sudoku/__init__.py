"""The game itself: boards, rules, exact solving, generation, traces, symmetry. Never torch."""
