"""Ring 0: the process that owns the log, the sockets, the children and the emergency stop."""
