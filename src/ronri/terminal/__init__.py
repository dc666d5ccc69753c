"""Boards and tables on the screen: still, and while a solver or a network works on them.

Nothing is imported here: a board is drawn by those who have no time for what tables need.
"""
