"""What is recorded: one file a part of the product."""
