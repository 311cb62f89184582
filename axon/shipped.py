"""Where the cognets lie that come with the release."""

from __future__ import annotations

from pathlib import Path

import cognets

SHIPPED_COGNETS = Path(next(iter(cognets.__path__)))
