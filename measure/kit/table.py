"""Tidy CSV files that survive whatever ends a run: a row is in the file whole or not at all."""

import csv
import errno
import fcntl
import io
import os


class TableError(Exception):
    """A file that cannot be read or written; the message says which and what to do."""


def read_table(path):
    """Header facts (dict) and rows (list of dicts) of a CSV with `# key: value` lines on top.

    A last line without its newline was cut off by a crash: it is left out.
    """
    facts, lines = {}, []
    with open(path, encoding="utf-8", newline="") as file:
        for line in file:
            if not line.endswith("\n"):
                break
            if line.startswith("#") and not lines:
                key, _, value = line[1:].partition(":")
                facts[key.strip()] = value.strip()
            else:
                lines.append(line)
    return facts, list(csv.DictReader(lines))


class Table:
    """One CSV open for appending. `facts` go on top of a new file; `columns` name the fields."""

    def __init__(self, path, columns, facts):
        self.path, self.columns = path, columns
        self._file = None
        try:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            self._file = open(path, "ab+", buffering=0)
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise TableError(f"{path}: another run writes this file; wait for it, or choose "
                                 "another folder with -o") from error
            self._drop_torn_end()
            if self._file.seek(0, os.SEEK_END) == 0:
                head = "".join(f"# {key}: {_one_line(value)}\n" for key, value in facts.items())
                self._append(head + _csv_line(columns))
            else:
                self._check_columns()
        except OSError as error:
            raise self._failure(error) from error
        except TableError:
            self.close()
            raise

    def write(self, row):
        """Appends one row (dict; missing columns are empty). Throws TableError, file unchanged."""
        try:
            self._append(_csv_line([row.get(column, "") for column in self.columns]))
        except OSError as error:
            raise self._failure(error) from error

    def close(self):
        if self._file:
            self._file.close()
            self._file = None

    def _append(self, text):
        size = self._file.seek(0, os.SEEK_END)
        rest = text.encode("utf-8")
        try:
            while rest:
                rest = rest[self._file.write(rest):]
        except BaseException:
            # A full disk, or Ctrl-C within the write: take back what got through.
            self._file.truncate(size)
            raise

    def _drop_torn_end(self):
        size = self._file.seek(0, os.SEEK_END)
        self._file.seek(0)
        whole = self._file.read().rfind(b"\n") + 1
        if whole < size:
            self._file.truncate(whole)

    def _check_columns(self):
        self._file.seek(0)
        for line in io.TextIOWrapper(io.BytesIO(self._file.read()), encoding="utf-8", newline=""):
            if not line.startswith("#"):
                found = next(csv.reader([line]))
                if found != self.columns:
                    raise TableError(f"{self.path}: has other columns than this kit writes "
                                     f"(expected {','.join(self.columns)}, found {','.join(found)}); "
                                     "move it away, or choose another folder with -o")
                return
        self._append(_csv_line(self.columns))

    def _failure(self, error):
        self.close()
        advice = {errno.ENOSPC: "; free some space and run again, it goes on from here",
                  errno.EACCES: "; choose another folder with -o"}.get(error.errno, "")
        return TableError(f"{self.path}: {error.strerror or error}{advice}. The rows before are whole.")


def _one_line(value):
    return " ".join(str(value).split())


def _csv_line(values):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([_one_line(value) for value in values])
    return text.getvalue()
