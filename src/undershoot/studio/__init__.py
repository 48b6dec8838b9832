"""The studio: the library in a browser. Pages call the library; what takes long runs in processes of its own."""
