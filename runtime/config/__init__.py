"""Reading ``axon.toml`` and ``cognet.toml``: typed values, and errors with file, line and key."""
