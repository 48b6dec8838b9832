"""The pages of the studio, one a file."""
