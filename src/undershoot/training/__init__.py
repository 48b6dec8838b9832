"""Learning heuristics that stay below the true cost: the paper's Algorithm 1."""
