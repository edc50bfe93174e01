"""Parts of documents that commands write, between two markers."""

import pathlib


def replace(page, begin, end, text):
    """Writes `text` (whole lines) between the markers of the file `page`."""
    path = pathlib.Path(__file__).resolve().parents[1] / page
    before, rest = path.read_text(encoding="utf-8").split(begin + "\n")
    path.write_text(before + begin + "\n" + text + end + rest.split(end)[1], encoding="utf-8")
