"""The studio: the library in a browser. Pages call the library; what takes long runs in processes of its own."""

import os

# NiceGUI reads what it finds in `.nicegui` in the working folder, whoever wrote that. Nothing is stored here.
os.environ["NICEGUI_STORAGE_PATH"] = os.devnull
