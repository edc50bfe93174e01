"""A file system on which the first writer of a part waits until it is killed, or may go on."""
import os
import pathlib
import time

import pyarrow.fs


class WaitingFiles(pyarrow.fs.FileSystemHandler):
    """Files of this machine. Who writes the file with `part` in its name says its process in `signs`/waiting, and waits for `signs`/go."""

    def __init__(self, part: str, signs: str):
        self.part, self.signs, self.files = part, pathlib.Path(signs), pyarrow.fs.LocalFileSystem()

    def __reduce__(self):
        return WaitingFiles, (self.part, str(self.signs))

    def __eq__(self, other):
        return isinstance(other, WaitingFiles) and (self.part, self.signs) == (other.part, other.signs)

    def __ne__(self, other):
        return not self == other

    def open_output_stream(self, path, metadata):
        if self.part in path:
            (self.signs / f"{os.getpid()}.tmp").write_text(str(os.getpid()))
            os.replace(self.signs / f"{os.getpid()}.tmp", self.signs / "waiting")
            while not (self.signs / "go").exists():
                time.sleep(0.01)
        return self.files.open_output_stream(path, metadata=metadata)

    def get_type_name(self):
        return "waiting"

    def normalize_path(self, path):
        return self.files.normalize_path(path)

    def get_file_info(self, paths):
        return self.files.get_file_info(paths)

    def get_file_info_selector(self, selector):
        return self.files.get_file_info(selector)

    def create_dir(self, path, recursive):
        self.files.create_dir(path, recursive=recursive)

    def delete_dir(self, path):
        self.files.delete_dir(path)

    def delete_dir_contents(self, path, missing_dir_ok=False):
        self.files.delete_dir_contents(path, missing_dir_ok=missing_dir_ok)

    def delete_root_dir_contents(self):
        raise NotImplementedError

    def delete_file(self, path):
        self.files.delete_file(path)

    def move(self, source, target):
        self.files.move(source, target)

    def copy_file(self, source, target):
        self.files.copy_file(source, target)

    def open_input_stream(self, path):
        return self.files.open_input_stream(path)

    def open_input_file(self, path):
        return self.files.open_input_file(path)

    def open_append_stream(self, path, metadata):
        return self.files.open_append_stream(path, metadata=metadata)
