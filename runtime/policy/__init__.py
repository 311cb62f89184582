"""Policy: pure decisions about what may be called; nothing here reads, writes or waits."""
