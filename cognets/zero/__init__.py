"""Zero: the reference mind. Its memory is the log, folded; a model speaks, and acts by writing Python."""
