"""Patterns: parts of a state, whose costs are true lower bounds for the whole of it."""
