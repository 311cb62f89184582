"""Records what the product writes, builds what a power cut could leave of it at every moment, and recovers each."""
