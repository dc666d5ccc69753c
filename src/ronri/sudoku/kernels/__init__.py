"""Compiled inner loops of the game. Public functions live one folder up and call these.

Kernels take plain arrays and write their results into arrays they are given, release the GIL,
and are cached on disk. They check nothing: their callers have.
"""
