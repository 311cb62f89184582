"""The tools host: runs the functions of the agent's own modules, outside the sandbox, in a process of its own."""
