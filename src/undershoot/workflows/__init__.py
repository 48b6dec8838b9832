"""What people do with bundles, from beginning to end: the command line calls these, and so may anybody."""
