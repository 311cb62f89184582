"""Execution of model-written blocks: queued, written ahead, their outcomes bounded and committed."""
