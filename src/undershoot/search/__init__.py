"""A* on many instances at once, with limits and lower bounds that are true."""
