"""The agent's long-term material: entries by name, in its own store and in the corpora of its modules.

A stage without an event loop: everything here blocks, and any process may use it, with or without a running kernel.
"""
