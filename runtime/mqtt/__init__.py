"""MQTT: the address of a broker, the client that kernel and drivers share, and the private broker."""
