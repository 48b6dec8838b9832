"""Puzzles as data: move tables, and what people and networks need to know about them."""
