"""Evaluation: a reasoner, puzzles and a budget make records, and records make scores."""
