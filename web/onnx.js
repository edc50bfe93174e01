// An ONNX file without its weights, which no forecast reads: a file of gigabytes becomes one of
// kilobytes. Only the parts that are kept are read. Field numbers: github.com/onnx/onnx, onnx.proto.

const GRAPH = 7;  // of a model
const INITIALIZER = 5;  // of a graph
const TENSOR = {type: 2, data: [4, 5, 6, 7, 9, 10, 11], externalData: 13, location: 14};
const INT64 = 7, INT32 = 6;

/** Values that may be shapes stay: whole numbers up to 2^14, as the importer keeps them, and small tensors. */
const MOST_VALUES = {whole: 8 << 14, other: 4096};

const KINDS = {varint: 0, fixed64: 1, bytes: 2, fixed32: 5};

/** Reads a file piece by piece. */
class Pieces {
  constructor(file) {
    this.file = file;
    this.start = 0;
    this.bytes = new Uint8Array(0);
  }

  /** The bytes from `at` to `end`. */
  async read(at, end) {
    if (at < this.start || end > this.start + this.bytes.length) {
      const most = Math.min(this.file.size, Math.max(end, at + (1 << 20)));
      this.bytes = new Uint8Array(await this.file.slice(at, most).arrayBuffer());
      this.start = at;
    }
    if (end > this.start + this.bytes.length) throw new Error('it ends too early');
    return this.bytes.subarray(at - this.start, end - this.start);
  }

  /** @returns {Promise<[number, number]>} a varint, and where it ends */
  async varint(at) {
    const bytes = await this.read(at, Math.min(at + 10, this.file.size));
    let value = 0, i = 0;
    for (; i < bytes.length; ++i) {
      value += (bytes[i] & 127) * 2 ** (7 * i);
      if (bytes[i] < 128) return [value, at + i + 1];
    }
    throw new Error('a number in it does not end');
  }

  /** The fields between two places: number, kind, where they begin, where their content is. */
  async* fields(at, end) {
    while (at < end) {
      const [tag, first] = await this.varint(at);
      const field = {number: Math.floor(tag / 8), kind: tag % 8, at, from: first, to: first};
      if (field.kind === KINDS.varint) [field.value, field.to] = await this.varint(first);
      else if (field.kind === KINDS.fixed64) field.to = first + 8;
      else if (field.kind === KINDS.fixed32) field.to = first + 4;
      else if (field.kind === KINDS.bytes) {
        const [length, from] = await this.varint(first);
        Object.assign(field, {from, to: from + length});
      } else throw new Error('it is not written as protobuf');
      if (field.to > end) throw new Error('it ends too early');
      yield field;
      at = field.to;
    }
  }
}

function varintBytes(value) {
  const bytes = [];
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
  return [...bytes, value];
}

const joined = (parts) => new Uint8Array(parts.flatMap((part) => [...part]));
const message = (number, content) =>
    joined([varintBytes(number * 8 + KINDS.bytes), varintBytes(content.length), content]);
const text = (value) => new TextEncoder().encode(value);
const entry = (key, value) => message(TENSOR.externalData, joined([message(1, text(key)), message(2, text(value))]));

/** A tensor whose long values are said to lie in another file, at a place of their own. */
async function withoutValues(file, tensor) {
  const kept = [], values = [];
  let type = 0, bytes = 0;
  for await (const field of file.fields(tensor.from, tensor.to)) {
    if (field.number === TENSOR.type) type = field.value;
    const isData = TENSOR.data.includes(field.number);
    if (isData) bytes += field.to - field.from;
    (isData ? values : kept).push(field);
  }
  const isWhole = type === INT64 || type === INT32;
  const stays = bytes <= (isWhole ? MOST_VALUES.whole : MOST_VALUES.other);
  const parts = [];
  for (const field of stays ? [...kept, ...values] : kept) parts.push((await file.read(field.at, field.to)).slice());
  if (!stays) {
    parts.push(entry('location', 'weights'), entry('offset', String(tensor.from)),
               new Uint8Array([...varintBytes(TENSOR.location * 8), 1]));
  }
  return message(INITIALIZER, joined(parts));
}

async function smallGraph(file, graph) {
  const parts = [];
  for await (const field of file.fields(graph.from, graph.to)) {
    parts.push(field.number === INITIALIZER ? await withoutValues(file, field) : (await file.read(field.at, field.to)).slice());
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** The bytes of an ONNX file without its weights. Throws where it is none. */
export async function withoutWeights(file) {
  const pieces = new Pieces(file);
  const parts = [];
  try {
    for await (const field of pieces.fields(0, file.size)) {
      if (field.number !== GRAPH) {
        parts.push((await pieces.read(field.at, field.to)).slice());
        continue;
      }
      const graph = await smallGraph(pieces, field);
      parts.push(new Uint8Array([...varintBytes(GRAPH * 8 + KINDS.bytes), ...varintBytes(graph.length)]), graph);
    }
  } catch (error) {
    throw new Error(`${file.name} is no ONNX file: ${error.message}.`);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}
