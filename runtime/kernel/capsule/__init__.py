"""The kernel's side of the capsule: its process, its link, and the runs it is given."""
