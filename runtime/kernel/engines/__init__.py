"""Engines as the kernel has them: which role is filled by what, their workers, their queues, and the brain's verbs."""
