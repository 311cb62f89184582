"""What runs inside a capsule: a persistent interpreter of blocks, and nothing of the kernel."""
