"""From a durable output or a tool's call to an actuator: policy, limits, emergency stop, and what was confirmed."""
