"""Files that are written whole or not at all, and files that may be packed with gzip."""

import gzip
import io
import os
import secrets
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

_OTHER_PACKINGS = {
    b"\xfd7zXZ": "xz",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"7z\xbc\xaf": "7-Zip",
}


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
    """The text in an open file, which may be packed with gzip or zip whatever its name says."""
    start = file.peek(8)[:8]
    for magic, name in _OTHER_PACKINGS.items():
        if start.startswith(magic):
            raise ValueError(f"{path}: this file is packed with {name}; unpack it first")
    if start.startswith(b"PK\x03\x04"):
        try:
            with zipfile.ZipFile(file) as archive:
                names = [name for name in archive.namelist() if not name.endswith("/")]
                if len(names) != 1:
                    raise ValueError(f"{path}: this zip archive has {len(names)} files; unpack it")
                with archive.open(names[0]) as member:
                    yield cast(io.BufferedIOBase, member)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise ValueError(
                f"{path}: the zip archive is damaged ({error}); download it again"
            ) from error
        return
    if not start.startswith(b"\x1f\x8b"):
        yield file
        return
    try:
        with gzip.GzipFile(fileobj=file) as stream:
            yield stream
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{path}: the gzip file is damaged or cut short ({error}); download it again"
        ) from error
