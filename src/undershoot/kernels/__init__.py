"""The move tables applied to many states at once: by numba on the CPU, by torch on any device."""
