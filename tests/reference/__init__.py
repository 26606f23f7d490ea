"""Slow twins of the native core, written from the formats' descriptions alone.

They import nothing of ``stoker`` and share no code with it, so that the two can only agree by both being right.
"""
