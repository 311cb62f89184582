"""Pulls the plug on the real product in a virtual machine, again and again, and counts what was lost."""
