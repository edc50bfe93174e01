"""The errors of Tilecast. The message says where, what was expected, what was found and what to do."""


class Error(Exception):
    """A request that cannot be fulfilled."""


class InputError(Error, ValueError):
    """A file or an argument does not make sense."""


class NotFoundError(Error, LookupError):
    """No such file, GPU, model or operator."""


class UnsupportedError(Error, ValueError):
    """Understood, but not something that Tilecast can forecast."""


class IoError(Error, OSError):
    """The operating system refused to read or write."""


class InternalError(Error, RuntimeError):
    """A bug in Tilecast."""
