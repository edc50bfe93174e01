// From the JSON answer of any question to a page. Values come from the JSON as they are: views
// choose, order and name them. Sums and ratios of results are in the library.

import {el} from './dom.js';
import {viewComparison, viewGpus} from './view_compare.js';
import {viewCollective, viewKernel, viewMemory} from './view_details.js';
import {viewEvaluation, viewServerEvaluation, viewSharingEvaluation} from './view_evaluate.js';
import {viewAccelerator, viewGeneration, viewPass} from './view_forecast.js';
import {viewAllocation, viewPlacement, viewShare, viewSimulation} from './view_jobs.js';
import {viewTrainingPlan, viewTrainingPlans} from './view_plans.js';
import {viewServingPlan} from './view_servers.js';
import {viewSweep} from './view_sweep.js';
import {viewTrace} from './view_trace.js';
import {viewAny, viewProducts, viewTuning} from './view_tune.js';

/** What tells answers apart, the first that fits is taken: `is` looks at an answer's fields. */
const VIEWS = [
  {is: (a) => a.kind === 'gpu_comparison', view: viewGpus},
  {is: (a) => a.kind === 'sweep', view: viewSweep},
  {is: (a) => a.kind === 'training', view: viewTrainingPlan},
  {is: (a) => a.kind === 'training_comparison', view: viewTrainingPlans},
  {is: (a) => a.kind === 'serving', view: viewServingPlan},
  {is: (a) => 'schedule' in a && 'time_to_first_token' in a, view: viewGeneration},
  {is: (a) => 'dataflow' in a && 'layers' in a, view: viewAccelerator},
  {is: (a) => 'timeline' in a && 'holders' in a, view: viewMemory},
  {is: (a) => 'explanations' in a, view: viewKernel},
  {is: (a) => 'latency_s' in a && 'kernels' in a && 'memory' in a, view: viewPass},
  {is: (a) => 'collective' in a, view: viewCollective},
  {is: (a) => 'a' in a && 'b' in a && 'overlaps' in a, view: viewComparison},
  {is: (a) => 'rank_tables' in a && 'rules' in a, view: viewPlacement},
  {is: (a) => 'sum_of_relative_speeds' in a, view: viewShare},
  {is: (a) => 'pool' in a && 'jobs' in a, view: viewAllocation},
  {is: (a) => 'policies' in a, view: viewSimulation},
  {is: (a) => 'rows' in a && 'models' in a, view: viewEvaluation},
  {is: (a) => 'series' in a && 'errors' in a, view: viewSharingEvaluation},
  {is: (a) => 'points' in a && 'errors' in a, view: viewServerEvaluation},
  {is: (a) => 'traced_gpu' in a && 'operators' in a, view: viewTrace},
  {is: (a) => 'problems' in a, view: viewTuning},
  {is: (a) => 'products' in a, view: viewProducts},
];

/**
 * The page of an answer.
 * @param {object} answer  as `--format json` writes it
 * @param {{command?: string}} [options]  `command`: the command line that asks it again
 * @returns {HTMLElement}
 */
export function view(answer, options = {}) {
  const record = Array.isArray(answer) ? {entries: answer} : answer;
  const found = VIEWS.find(({is}) => is(record));
  const parts = found ? found.view(record, options) : viewAny(record, options);
  return el('article', {class: 'answer'}, parts.flat().filter(Boolean));
}
