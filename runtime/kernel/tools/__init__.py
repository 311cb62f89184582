"""The kernel's end of the tools host, and what stands before each call: policy, and a person where policy asks one."""
