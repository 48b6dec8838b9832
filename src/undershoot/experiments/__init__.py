"""Instance sets, comparisons and records."""
