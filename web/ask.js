// The service: questions in, answers or problems out.

const TOKEN = 'tilecast-token';

/** What the service says is wrong, by RFC 9457. */
export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
  /** The names of options that the message states in backquotes. */
  get options() {
    return [...this.message.matchAll(/`([a-z0-9_-]+)`/g)].map((found) => found[1].replaceAll('-', '_'));
  }
}

/** The token of a service that asks for one; it is forgotten when the browser tab is closed. */
export function keepToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

async function problemOf(response) {
  const text = await response.text();
  try {
    return new Problem(response.status, JSON.parse(text).detail ?? text);
  } catch {
    return new Problem(response.status, text || response.statusText);
  }
}

async function load(path, init) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = {...init?.headers, ...(token && {Authorization: `Bearer ${token}`})};
  let response;
  try {
    response = await fetch(path, {...init, headers});
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem(0, 'The service does not answer: is it running?');
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

/** A catalogue, or one entry: list('gpus'), list('options/forecast'). */
export async function list(name) {
  return (await load(`v1/${name}`)).json();
}

/**
 * Asks a question.
 * @param {string} question its name in the path
 * @param {object} body its options
 * @param {{fields?: string, format?: string}} shown which part or view of the answer
 * @param {AbortSignal} [signal] ends the request
 * @returns {Promise<Response>}
 */
export function ask(question, body, shown = {}, signal = undefined) {
  const query = new URLSearchParams(shown).toString();
  return load(`v1/${question}${query && '?'}${query}`, {
    method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body), signal,
  });
}

const PAUSES_MS = [50, 100, 200, 400];  // between questions how far a job is; the last one repeats

const pause = (milliseconds, signal) => new Promise((done, failed) => {
  const timer = setTimeout(done, milliseconds);
  signal.addEventListener('abort', () => { clearTimeout(timer); failed(signal.reason); }, {once: true});
});

/**
 * Asks a question that takes long, as a job: the service works on it while requests go on, and stops
 * where it is not wanted any more.
 * @param {(progress: {done: number, total: number, unit: string}) => void} show
 * @param {AbortSignal} signal cancels the job
 */
export async function askJob(question, body, show, signal) {
  const begun = await load(`v1/${question}`, {
    method: 'POST', headers: {'Content-Type': 'application/json', Prefer: 'respond-async'}, body: JSON.stringify(body), signal,
  });
  const answer = await begun.json();
  if (begun.status !== 202) return answer;  // a service without jobs has answered at once
  const place = `v1/jobs/${answer.id}`;
  try {
    for (let i = 0;; ++i) {
      const job = await (await load(place, {signal})).json();
      if (job.result) return await (await load(`${place}/result`, {signal})).json();
      if (job.progress) show(job.progress);
      await pause(PAUSES_MS[Math.min(i, PAUSES_MS.length - 1)], signal);
    }
  } finally {
    load(place, {method: 'DELETE', keepalive: true}).catch(() => {});  // its result is here, or not wanted
  }
}

/** The same as `ask`, as the JSON of the answer. */
export async function askJson(question, body, shown = {}, signal = undefined) {
  return (await ask(question, body, shown, signal)).json();
}
