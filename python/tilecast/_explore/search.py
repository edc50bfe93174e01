"""Designs from an optimizer, a batch at a time. The same seed gives the same designs, whatever forecasts them."""
from __future__ import annotations

import warnings

from .._errors import InputError

try:
    import optuna
except ImportError as error:
    raise ImportError("tilecast.explore needs Optuna: pip install 'tilecast[explore]'") from error

SAMPLERS = ("nsga2", "tpe", "random")
_MISSES = "misses"


def _distribution(entry):
    kinds = optuna.distributions
    if entry.choices:
        return kinds.CategoricalDistribution(entry.choices)
    if entry.whole:
        return kinds.IntDistribution(int(entry.low), int(entry.high), log=entry.log, step=int(entry.step or 1))
    return kinds.FloatDistribution(entry.low, entry.high, log=entry.log, step=entry.step)


def _misses(trial):
    return trial.user_attrs[_MISSES]


class Search:
    """Asks and tells. Missed limits count before objectives: of two designs that miss some, the one that misses less is better."""

    def __init__(self, space, sampler, seed: int, batch: int):
        sampler = sampler or ("nsga2" if len(space.objectives) > 1 else "tpe")
        if sampler not in SAMPLERS:
            raise InputError(f"`sampler`: expected one of {', '.join(SAMPLERS)}, found '{sampler}'")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # parts of Optuna's samplers are marked as experimental
            if sampler == "nsga2":
                made: optuna.samplers.BaseSampler = optuna.samplers.NSGAIISampler(population_size=max(2, batch), seed=seed, constraints_func=_misses)
            elif sampler == "tpe":
                made = optuna.samplers.TPESampler(seed=seed, constraints_func=_misses, constant_liar=True, multivariate=True)
            else:
                made = optuna.samplers.RandomSampler(seed=seed)
        self.study = optuna.create_study(directions=["maximize" if entry.maximize else "minimize" for entry in space.objectives], sampler=made)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the last step may be below the range's end
            self.distributions = {entry.name: _distribution(entry) for entry in space.parameters}
        self.trials: list = []

    def ask(self, count: int) -> list:
        """Parameters of the next designs."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.trials = [self.study.ask(self.distributions) for _ in range(count)]
        return [dict(trial.params) for trial in self.trials]

    def tell(self, answers: list) -> None:
        """For each design of the last ask its objectives, and by how much it misses each limit."""
        for trial, (values, misses) in zip(self.trials, answers):
            trial.set_user_attr(_MISSES, misses)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.study.tell(trial, values)
