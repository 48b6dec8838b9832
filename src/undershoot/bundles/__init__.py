"""Learned heuristics on disk, and heuristics by name."""
