"""The cognets that come with Axon Edge: folders to run as they are, or to copy and change."""
