"""What the kernel and the brain share: entries, payloads, telemetry, errors, and the messages between them."""
