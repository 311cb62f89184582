"""The scripted engine: answers by rules instead of a model, the same to the same messages every time."""
