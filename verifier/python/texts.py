"""Reads texts in UTF-8, and says why one cannot be read."""

import errno
from contextlib import contextmanager

REASONS = {
    errno.ENOENT: "does not exist",
    errno.ENOTDIR: "does not exist",
    errno.EISDIR: "is a folder: name a file",
    errno.EACCES: "may not be read by this account",
}


@contextmanager
def opened(path):
    """A file, whose lines end with a line feed."""
    try:
        with open(path, encoding="utf-8", newline="\n") as file:
            yield file
    except OSError as error:
        other = f"cannot be read ({errno.errorcode.get(error.errno)})"
        raise ValueError(f"{path} {REASONS.get(error.errno, other)}") from None
    except UnicodeDecodeError as error:
        is_compressed = error.object.startswith(b"\x1f\x8b")
        reason = "is compressed: unpack it first" if is_compressed else "is no text in UTF-8"
        raise ValueError(f"{path} {reason}") from None


def text_of(path):
    with opened(path) as file:
        return file.read()
