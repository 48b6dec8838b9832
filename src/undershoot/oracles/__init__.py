"""Exact distances by enumeration."""
