"""Files that are written whole or not at all, and files that may be packed with gzip."""

import gzip
import io
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: str | Path) -> Iterator[io.BufferedWriter]:
    """A file that gets its name when it is whole, and not before.

    Bytes go to `NAME.xxxxxxxx.partial` in the same folder. Leaving the block renames it; an
    exception deletes it; a killed process leaves it behind, where it is in nobody's way.
    """
    path = Path(path)
    if path.is_dir():
        # The rename would fail too, but only after all the work.
        raise ValueError(f"{path} is a folder: name a file to write")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with partial.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def zipped(path: str | Path) -> Iterator[io.BufferedIOBase]:
    """A `whole_file`, packed with gzip if its name ends in `.gz`; equal text makes equal bytes."""
    path = Path(path)
    with whole_file(path) as file:
        if path.suffix != ".gz":
            yield file
            return
        # Neither name nor time in the gzip header, or equal text would not make equal bytes.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as stream:
            yield stream


@contextmanager
def unzipped(file: io.BufferedReader, path: Path) -> Iterator[io.BufferedIOBase]:
    """The text in an open file, which may be packed with gzip whatever its name says."""
    start = file.peek(4)[:4]
    if start == b"PK\x03\x04":
        raise ValueError(f"{path}: this is a zip archive; unpack it first")
    if start[:2] != b"\x1f\x8b":
        yield file
        return
    try:
        with gzip.GzipFile(fileobj=file) as stream:
            yield stream
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{path}: the gzip file is damaged or cut short ({error}); download it again"
        ) from error
