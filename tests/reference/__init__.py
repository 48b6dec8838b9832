"""Second implementations, written plainly from the rules of the puzzles. They share no code with the package."""
