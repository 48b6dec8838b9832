"""Searches in torch, on CUDA devices; on the processor in tests."""
