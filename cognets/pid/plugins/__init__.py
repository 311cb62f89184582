"""The plugins of reflex: each file here is imported when the cognet is loaded."""
