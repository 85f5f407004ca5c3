"""Where this user's programs keep what can be made again.

Ref: XDG Base Directory Specification; Apple, File System Programming Guide; Known Folder IDs.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

OTHERS_MAY_WRITE = 0o022


def cache_folder() -> Path:
    """Return the folder of Mizzen in the user's cache, which need not be there."""
    home = Path.home()
    match sys.platform:
        case "win32":
            place = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
            return place / "mizzen" / "cache"
        case "darwin":
            return home / "Library" / "Caches" / "mizzen"
        case _:
            return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "mizzen"


def is_private(path: Path) -> bool:
    """Whether only this user can change a file or folder; Windows keeps users apart itself."""
    if not hasattr(os, "geteuid"):
        return True
    status = path.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & OTHERS_MAY_WRITE
