"""The media store: bytes by their digest, bounded, in memory or on disk."""
