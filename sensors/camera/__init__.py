"""Camera sources: each yields one JPEG (or the file's own encoding) a capture; the only users of OpenCV here."""
