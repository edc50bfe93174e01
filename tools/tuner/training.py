"""What the trainings of this folder share: going on where an interrupted one stopped."""

import pathlib

import torch


class Checkpoint:
    """The state after each epoch in one file; without a path nothing is kept."""

    def __init__(self, path, parts, generator=None):
        """`parts`: by name, what has a state_dict."""
        self.path = pathlib.Path(path) if path else None
        self.parts, self.generator = parts, generator

    def load(self):
        """Restores what is there and returns the epoch to begin with."""
        if not self.path or not self.path.exists():
            return 0
        state = torch.load(self.path)
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        if self.generator is not None:
            self.generator.set_state(state["generator"])
        torch.set_rng_state(state["rng"])
        return state["epoch"]

    def save(self, epochs_done):
        if not self.path:
            return
        state = {name: part.state_dict() for name, part in self.parts.items()}
        if self.generator is not None:
            state["generator"] = self.generator.get_state()
        # Written beside it first: an interruption leaves the last epoch's file whole.
        part = self.path.with_name(self.path.name + ".part")
        torch.save(dict(state, rng=torch.get_rng_state(), epoch=epochs_done), part)
        part.replace(self.path)
