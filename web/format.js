// Numbers with their units, as the command line shows them (src/base/text.cc).

/** Three digits: 1.23, 12.3, 123, 1,234. */
export function formatCount(value) {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size >= 1e15) return value.toPrecision(3);
  if (size >= 999.5) return formatInteger(value);
  if (size >= 99.95) return value.toFixed(0);
  if (size >= 9.995) return value.toFixed(1);
  if (size === 0) return '0';
  return size < 0.005 ? value.toPrecision(2) : value.toFixed(2);
}

/** 1,234,567 */
export function formatInteger(value) {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ',');
}

/** A time in s: "12.3 ms". */
export function formatSeconds(seconds) {
  const size = Math.abs(seconds);
  if (size === 0) return '0 s';
  if (size >= 0.9995) return formatCount(seconds) + ' s';
  if (size >= 0.9995e-3) return formatCount(seconds * 1e3) + ' ms';
  return formatCount(seconds * 1e6) + ' us';
}

const BINARY = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
/** Bytes of memory: "12.3 GiB". */
export function formatBytes(bytes) {
  let value = bytes;
  let unit = 0;
  while (Math.abs(value) >= 1023.5 && unit + 1 < BINARY.length) {
    value /= 1024;
    unit += 1;
  }
  return unit === 0 ? `${Math.round(bytes)} B` : `${formatCount(value)} ${BINARY[unit]}`;
}

const PREFIXES = ['', 'k', 'M', 'G', 'T', 'P', 'E'];
/** A value with a prefix of SI: formatSi(9.9e14, 'FLOP/s') is "990 TFLOP/s". */
export function formatSi(value, unit) {
  let scaled = value;
  let prefix = 0;
  while (Math.abs(scaled) >= 999.5 && prefix + 1 < PREFIXES.length) {
    scaled /= 1000;
    prefix += 1;
  }
  return `${formatCount(scaled)} ${PREFIXES[prefix]}${unit}`.trimEnd();
}

/** A ratio as a percentage. */
export function formatShare(ratio) {
  const percent = ratio * 100;
  const size = Math.abs(percent);
  return (size >= 99.95 || size === 0 ? percent.toFixed(0) : percent.toFixed(1)) + ' %';
}

/** A time in s of a job that may run for hours: "12.5 h". */
function formatHours(seconds) {
  return seconds >= 3600 ? `${formatCount(seconds / 3600)} h` : formatSeconds(seconds);
}

const FORMATS = {
  's': formatSeconds,
  'hours': formatHours,
  'bytes': formatBytes,
  'bytes/s': (v) => formatSi(v, 'B/s'),
  'traffic': (v) => formatSi(v, 'B'),
  'FLOP': (v) => formatSi(v, 'FLOP'),
  'FLOP/s': (v) => formatSi(v, 'FLOP/s'),
  'FLOP/byte': (v) => `${formatCount(v)} FLOP/B`,
  'Hz': (v) => formatSi(v, 'Hz'),
  'W': (v) => formatSi(v, 'W'),
  'J': (v) => formatSi(v, 'J'),
  'share': formatShare,
  '%': (v) => `${formatCount(v)} %`,
  'count': (v) => (Number.isInteger(v) ? formatInteger(v) : formatCount(v)),
  'parameters': (v) => formatSi(v, ''),
};

/**
 * A number in its unit: 's', 'hours' (a time in s, shown in hours if it is long), 'bytes' (of
 * memory), 'traffic' (bytes that move), 'bytes/s', 'FLOP',
 * 'FLOP/s', 'FLOP/byte', 'Hz', 'W', 'J', 'share' (a ratio shown in %), '%', 'count', 'parameters',
 * or any other text, which follows the number: 'tokens/s'. A missing number is "–".
 */
export function format(value, unit) {
  if (value === null || value === undefined) return '–';
  if (typeof value !== 'number') return String(value);
  const known = FORMATS[unit ?? 'count'];
  if (known) return known(value);
  return unit === '' ? FORMATS.count(value) : `${FORMATS.count(value)} ${unit}`;
}

/** "12.3 ms (11.0 ms to 14.1 ms)": a value with its 80 % interval, if it has one. */
export function formatInterval(value, low, high, unit) {
  const text = format(value, unit);
  if (low === null || low === undefined || high === null || high === undefined) return text;
  return low === high ? text : `${text} (${format(low, unit)} to ${format(high, unit)})`;
}

/** Endings of the names of fields, which state the unit; the first that fits is taken. */
const ENDINGS = [
  ['flops_per_byte', 'FLOP/byte'], ['flops_per_s', 'FLOP/s'], ['bytes_per_s', 'bytes/s'],
  ['flops_per_token', 'FLOP'], ['tokens_per_s_per_gpu', 'tokens/s'], ['tokens_per_s', 'tokens/s'],
  ['requests_per_s_per_gpu', 'requests/s'], ['requests_per_s', 'requests/s'],
  ['images_per_s', 'images/s'], ['steps_per_s', 'steps/s'], ['steps_per_s_low', 'steps/s'],
  ['steps_per_s_high', 'steps/s'], ['per_s', '/s'],
  ['_s', 's'], ['seconds', 's'], ['_bytes', 'bytes'], ['bytes', 'bytes'],
  ['bytes_per_token', 'bytes'], ['bytes_per_sequence', 'bytes'], ['flops', 'FLOP'],
  ['_percent', '%'], ['bias_ratio', ''], ['tie_ratio', 'share'], ['utilization_ratio', 'share'],
  ['mfu_ratio', 'share'], ['busy_ratio', 'share'], ['_share', 'share'], ['utilization', 'share'],
  ['memory_reserve', 'share'], ['_hz', 'Hz'], ['_w', 'W'], ['_j', 'J'],
  ['parameters', 'parameters'],
  ['cache_use', 'share'], ['acceptance_rate', 'share'],
];

/** The unit that the name of a field states; 'count': it states none. */
export function unitOf(name) {
  const found = ENDINGS.find(([ending]) => name === ending || name.endsWith(ending));
  return found ? found[1] : 'count';
}

/** The name of a field for people: "peak_bytes" becomes "peak". */
export function labelOf(name) {
  const label = name.replace(/_per_s(?=_|$)/, '/s').replace(/_(s|bytes|percent|hz|ratio)$/, '');
  return LABELS[name] ?? (label.replace(/_/g, ' ').trim() || name);
}

const LABELS = {
  latency_s: 'latency', ttft_s: 'time to first token', tpot_s: 'time per output token',
  time_to_first_token: 'time to first token', time_per_output_token: 'time per output token',
  end_to_end: 'end to end', gpu: 'GPU', gpus: 'GPUs', mfu_ratio: 'MFU', utilization_ratio: 'HFU',
  tp: 'tensor parallel', pp: 'pipeline stages', dp: 'data parallel', cp: 'context parallel',
  ep: 'expert parallel', tokens_per_s: 'tokens/s', requests_per_s: 'requests/s',
  steps_per_s: 'steps/s', flops: 'work', bytes: 'bytes', op: 'kernel', mape_percent: 'mean error',
  median_percent: 'median error', p90_percent: '90 % are below', error_percent: 'error',
  bias_ratio: 'forecast / measured', coverage_percent: 'inside the interval', seq: 'tokens',
};
