"""Sensor drivers: each a process of its own that publishes stimuli over MQTT until the kernel confirms them."""
