"""Drivers of actuators: processes that hear commands over MQTT and put them into the world, or take the safe action."""
