"""The command line: what a person types to make, run, watch and stop an agent."""
