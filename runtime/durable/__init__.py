"""What is written so that it survives a cut: small files, SQLite databases, and the gates before both."""
