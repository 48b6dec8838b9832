"""Estimates of the cost to the goal, each with what is known about it."""
