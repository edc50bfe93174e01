// The questions of the page: which question of the service each is, and with which options.

/** Titles of groups of options (GET /v1/options/QUESTION). */
const COMMON = 'Options';
const PASS = 'One pass or training step (without --prompt)';
const TOKENS = 'Text generation (with --prompt)';
const SPACE = 'What is searched (lists, \'1,2,4\'; default: all that are possible)';
/** Options that have fields of their own on the page, or name files, which a service does not open. */
const ELSEWHERE = ['model', 'gpu', 'gpus', 'mode', 'trace', 'mapping', 'weights', 'calibration'];

/**
 * @typedef {object} Scenario
 * @property {string} id
 * @property {string} title
 * @property {string} question of the service
 * @property {string[]} groups of options that apply
 * @property {object} fixed options that make it this scenario
 * @property {object} usual options with another default here: placeholders until they are changed
 * @property {string[]} without options that do not apply
 * @property {boolean} [slow] the answer takes seconds: it is asked for by a button
 */

/** @type {Scenario[]} */
export const SCENARIOS = [
  {id: 'pass', title: 'One pass', question: 'forecast', groups: [PASS, COMMON], fixed: {}, usual: {},
    without: [...ELSEWHERE, 'optimizer', 'optimizer_impl', 'zero_grad', 'checkpointing', 'tokens', 'zero', 'bucket_cap_mb',
      'overlap_grad_reduce', 'main_params_dtype', 'microbatches', 'micro_batch_size', 'pipeline_schedule']},
  {id: 'training', title: 'Training step', question: 'forecast', groups: [PASS, COMMON], fixed: {mode: 'training'}, usual: {},
    without: ELSEWHERE},
  {id: 'generation', title: 'Text generation', question: 'forecast', groups: [TOKENS, COMMON], fixed: {},
    usual: {prompt: '1024', output: '256'},
    without: [...ELSEWHERE, 'rate', 'concurrency', 'requests', 'schedule', 'replicas', 'router', 'prefix_hit_rate',
      'server_overhead_s', 'ttft_s', 'tpot_s', 'prefill_workers', 'prefill_tp', 'prefill_pp', 'prefill_dp', 'prefill_ep',
      'encode_workers', 'encode_tp', 'kv_transfer', 'max_num_seqs', 'session_turns', 'session_turn_delay_s',
      'warmup_request_count', 'prefix_len', 'num_prefixes', 'hash_block_size',
      'enable_prefix_caching', 'kv_offloading_size']},
  {id: 'server', title: 'Server under load', question: 'forecast', groups: [TOKENS, COMMON], fixed: {},
    usual: {prompt: '1024', output: '256', requests: '300'},
    without: [...ELSEWHERE, 'rate', 'concurrency', 'batch', 'schedule', 'hash_block_size']},
  {id: 'plan-server', title: 'Plan a server', question: 'plan', groups: ['Serving (with --prompt)', COMMON, SPACE], fixed: {},
    usual: {prompt: '1024', output: '256', num_gpus: '4'}, without: [...ELSEWHERE, 'cluster', 'nodes'], slow: true},
  {id: 'plan-training', title: 'Plan training', question: 'plan',
    groups: ['Training (without --prompt)', COMMON, SPACE, 'Further lists for training'], fixed: {},
    usual: {batch: '64', num_gpus: '8'}, without: [...ELSEWHERE, 'cluster', 'nodes'], slow: true},
  {id: 'share', title: 'Share a GPU', question: 'share', groups: [COMMON], fixed: {}, usual: {},
    without: [...ELSEWHERE, 'job', 'jobs', 'pairs']},
];

/** @returns {Scenario} */
export function scenarioOf(id) {
  return SCENARIOS.find((scenario) => scenario.id === id) ?? SCENARIOS[0];
}

/** The options of a scenario, each once, in the order of its groups. */
export function optionsOf(scenario, groups) {
  const byName = new Map();
  for (const title of scenario.groups) {
    for (const option of groups.find((group) => group.title === title)?.options ?? []) {
      if (!scenario.without.includes(option.name) && !byName.has(option.name)) byName.set(option.name, option);
    }
  }
  return [...byName.values()];
}

/** A typed text as the value of an option in JSON; what is no number is left to the service to judge. */
function valueOf(option, text) {
  if (option.type === 'boolean') return text === 'on';
  if (option.list) return text.split(',').map((part) => part.trim());
  const isNumber = option.type === 'integer' || option.type === 'number';
  return isNumber && String(Number(text)) === text ? Number(text) : text;
}

/** The settings of a request, of the options that the scenario has. */
export function settingsOf(state, scenario, options) {
  const settings = {...scenario.fixed};
  for (const option of options) {
    const text = state.options[option.name] ?? scenario.usual[option.name] ?? '';
    if (text.trim() !== '') settings[option.name] = valueOf(option, text.trim());
  }
  return settings;
}

/** The model of a request: its name, or the content of its file. */
export function modelOf(state) {
  if (!state.content) return state.model;
  try {
    return JSON.parse(state.content);
  } catch {
    return state.content;  // a graph
  }
}
