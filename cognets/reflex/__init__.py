"""Reflex: a small brain at 30 Hz that keeps a model of its senses, steers by it, and thinks about what is new."""
