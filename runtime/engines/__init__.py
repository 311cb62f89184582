"""The engines' own side: the worker's process, what a provider is, and the providers that ship."""
