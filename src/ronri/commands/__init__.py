"""The commands, one small function each; `ronri.cli` puts them together.

Nothing heavy is imported at the top of these files: a command imports what it needs when it runs.
"""
