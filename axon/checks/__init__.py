"""What ``axon doctor`` looks at: one file a subject."""
