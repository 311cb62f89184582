"""Ingest: what becomes of a message from outside, decided in memory and without I/O."""
