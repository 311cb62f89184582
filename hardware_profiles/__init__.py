"""What is known about boards: one TOML file each, and which of them this machine is."""
