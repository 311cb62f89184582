"""Microphone sources: each yields one block of sound a capture, as a small WAV (16-bit mono PCM)."""
