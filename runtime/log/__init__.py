"""The session log: one writer, a projection in memory, readers beside it, and recovery after any end."""
