"""Pid: a mind with no model in it. It holds a measured value at a setpoint, 20 times a second."""
