"""Moving a network down until something is known about it: one file a method."""
