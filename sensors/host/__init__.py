"""The host as a sensor: how busy, full, warm the machine is."""
