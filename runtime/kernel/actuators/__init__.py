"""From a durable output, or a tool's call, to an actuator: policy, limits, the emergency stop, and what was confirmed."""
