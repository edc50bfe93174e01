"""Writes the project's weights container, as src/base/weights_container.cc reads it."""

import json

import numpy

MAGIC = b"tilecast-weights 7\n"
MASK = (1 << 64) - 1


def checksum(payload: bytes) -> int:
    """FNV-1a over words of 8 bytes, as src/base/weights_container.cc."""
    words = numpy.frombuffer(payload + b"\0" * (-len(payload) % 8), "<u8").tolist()
    value = 14695981039346656037
    for word in words:
        value = ((value ^ word) * 1099511628211) & MASK
        value ^= value >> 32
    return value


class Payload:
    """Matrices in the layout of src/tuning/tensors.h."""

    def __init__(self):
        self.entries, self.parts = [], []

    def add(self, name, matrix):
        matrix = numpy.ascontiguousarray(numpy.atleast_2d(matrix), dtype="<f4")
        rows, columns = matrix.shape
        self.entries.append({"name": name, "rows": rows, "columns": columns})
        self.parts.append(matrix.tobytes())

    def write(self, path, header):
        payload = b"".join(self.parts)
        header = dict(header, tensors=self.entries, schema_version=7,
                      float_count=len(payload) // 4, checksum=checksum(payload))
        text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
        # The payload begins at a multiple of 16 bytes.
        while (len(MAGIC) + len(str(len(text))) + 1 + len(text)) % 16:
            text += b" "
        with open(path, "wb") as file:
            file.write(MAGIC + str(len(text)).encode() + b"\n" + text + payload)
        return len(MAGIC) + len(text) + len(payload)
