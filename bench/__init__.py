"""Speed, measured: every figure beside its reference, in the same run on the same machine."""
