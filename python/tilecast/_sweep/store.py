"""The folder of a sweep on any file system of pyarrow. A file is there whole or not at all."""
from __future__ import annotations

import os
import uuid

import pyarrow
import pyarrow.fs

from .._errors import InputError, IoError

# What a writer that was killed leaves behind. Readers of data sets pass over names that begin with a dot or an underscore.
_UNFINISHED = ".tmp"
# These make an object visible when its upload ends; others need a second name.
_OBJECT_STORES = ("s3", "gcs", "abfs")
# A second driver may remove the unfinished file of this one while it cleans up.
_TRIES = 3


class Store:
    """A folder. It can be sent to other processes."""

    def __init__(self, out, filesystem=None):
        """out: a path, or a URI ("s3://bucket/folder") without `filesystem`. Raises InputError for what is neither."""
        text = os.fspath(out)
        try:
            if filesystem is not None:
                self.filesystem, self.path = filesystem, text
            elif "://" in text:
                self.filesystem, self.path = pyarrow.fs.FileSystem.from_uri(text)
            else:
                self.filesystem, self.path = pyarrow.fs.LocalFileSystem(), os.path.abspath(text)
        except (pyarrow.ArrowException, ValueError, OSError) as error:
            raise InputError(f"`out` '{text}': {error}") from error
        self.path = self.path.rstrip("/")
        self.shown = text

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}"

    def _failed(self, what: str, name: str, error: Exception) -> IoError:
        return IoError(f"{self.shown}: '{name}' cannot be {what}: {error}")

    def create(self) -> None:
        """Makes the folder. Raises InputError where a file has its name."""
        try:
            info = self.filesystem.get_file_info(self.path)
            if info.type == pyarrow.fs.FileType.File:
                raise InputError(f"{self.shown}: is a file; `out` is a folder of Parquet files: name another one, or remove the file")
            self.filesystem.create_dir(self.path, recursive=True)
        except (pyarrow.ArrowException, OSError) as error:
            if isinstance(error, InputError):
                raise
            raise IoError(f"{self.shown}: the folder cannot be made: {error}") from error

    def names(self) -> list:
        """Names of all files, sorted."""
        selector = pyarrow.fs.FileSelector(self.path, allow_not_found=True)
        try:
            return sorted(info.base_name for info in self.filesystem.get_file_info(selector))
        except (pyarrow.ArrowException, OSError) as error:
            raise IoError(f"{self.shown}: the folder cannot be read: {error}") from error

    def open(self, name: str):
        """The file for random access. Raises IoError where there is none."""
        try:
            return self.filesystem.open_input_file(self._at(name))
        except (pyarrow.ArrowException, OSError) as error:
            raise self._failed("read", name, error) from error

    def read(self, name: str) -> bytes:
        with self.open(name) as file:
            return file.read()

    def remove(self, name: str) -> None:
        """Nothing happens where there is no such file."""
        try:
            self.filesystem.delete_file(self._at(name))
        except (pyarrow.ArrowException, OSError):
            pass

    def remove_unfinished(self) -> None:
        for name in self.names():
            if name.endswith(_UNFINISHED):
                self.remove(name)

    def write(self, name: str, content) -> None:
        """Replaces a file by `content`. Raises IoError, after which the file is as it was."""
        self._write_tried(name, content, replace=True)

    def write_new(self, name: str, content) -> None:
        """The same, but a file that is there stays. Only folders of the machine can tell: elsewhere the last writer wins, so read it back."""
        self._write_tried(name, content, replace=False)

    def _write_tried(self, name: str, content, replace: bool) -> None:
        for attempt in range(_TRIES):
            try:
                return self._write(name, content, replace)
            except FileNotFoundError as error:
                if attempt + 1 == _TRIES:
                    raise self._failed("written", name, error) from error
            except (pyarrow.ArrowException, OSError) as error:
                raise self._failed("written", name, error) from error

    def _write(self, name: str, content, replace: bool) -> None:
        if self.filesystem.type_name in _OBJECT_STORES:
            stream = self.filesystem.open_output_stream(self._at(name))
            stream.write(content)
            return stream.close()
        unfinished = f".{name}.{uuid.uuid4().hex}{_UNFINISHED}"
        try:
            if self.filesystem.type_name == "local":
                self._write_and_sync(self._at(unfinished), content)
                return self._give_name(self._at(unfinished), self._at(name), replace)
            with self.filesystem.open_output_stream(self._at(unfinished)) as stream:
                stream.write(content)
            self.filesystem.move(self._at(unfinished), self._at(name))
        except BaseException:
            self.remove(unfinished)
            raise

    @staticmethod
    def _give_name(unfinished: str, path: str, replace: bool) -> None:
        if replace:
            return os.replace(unfinished, path)
        try:
            os.link(unfinished, path)  # it replaces nothing
        except FileExistsError:
            pass
        except FileNotFoundError:
            raise
        except OSError:  # a file system without links
            return os.replace(unfinished, path)
        os.remove(unfinished)

    @staticmethod
    def _write_and_sync(path: str, content) -> None:
        # Before the file gets its name its bytes are on the disk, so a crash of the machine leaves no empty part.
        with open(path, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
