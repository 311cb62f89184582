"""One file a command of ``axon``."""
