"""Puzzles on their way to a model: files in every public format, stored sets, splits, suites."""
