"""Recurrent networks, which cuDNN runs as one call."""
from .pieces import allocate, stream, text


def _layers(op, weights, places):
    """For each layer of a recurrent network, the weights for inputs and for the state of each direction.
    `places`: where the numbers of layers and whether there are two directions are among the arguments."""
    stride, (layers, both) = op.args[2], (op.args[place] for place in places)
    directions = 2 if both else 1
    for layer in range(layers):
        yield [weights[(layer * directions + d) * stride:][:2] for d in range(directions)]


def _stacked(writer, weight):
    return writer.use(weight, (1, *weight.shape), (weight.elements, *weight.stride))


def _sequence(x, batch_first, batches):
    """(steps, batch, strides of [steps, batch, features]); None where steps have batches of several sizes."""
    if batches:  # packed: [steps x batch, features]
        if len(x.shape) != 2 or len(set(batches)) != 1:
            return None
        return len(batches), batches[0], (batches[0] * x.stride[0], *x.stride)
    if len(x.shape) != 3:
        return None
    if batch_first:
        return x.shape[1], x.shape[0], (x.stride[1], x.stride[0], x.stride[2])
    return *x.shape[:2], x.stride


def _recurrent(writer, op):
    """A node for each layer and direction; all write to the results of the whole network."""
    x, weights, _, _, _, _, mode, hidden, projected, _, batch_first = op.args[:11]
    sequence = _sequence(x, batch_first, op.args[14])
    if projected or sequence is None:
        return stream()(writer, op)
    gates = {2: 4, 3: 3}.get(mode, 1)
    allocate(writer, op)
    steps, batch, strides = sequence
    current = writer.use(x, (steps, batch, x.shape[-1]), strides)
    for directions in _layers(op, weights, (9, 13)):
        y = None
        for inputs, state in directions:
            y = writer.node("recurrent", [current, _stacked(writer, inputs), _stacked(writer, state)], [None], gates=gates)
        if len(directions) == 2:
            y = writer.node("allocate", [], [None], outputs=text(x.dtype, (steps, batch, 2 * hidden)))
        current = y
    return None


def _recurrent_backward(writer, op):
    x, weights = op.args[:2]
    mode, hidden, projected, _, batch_first = op.args[10:15]
    sequence = _sequence(x, batch_first, op.args[18])
    if projected or sequence is None:
        return stream()(writer, op)
    gates = {2: 4, 3: 3}.get(mode, 1)
    allocate(writer, op)
    steps, batch, _ = sequence
    dy = writer.node("allocate", [], [None], outputs=text(x.dtype, (steps, batch, hidden)))
    for directions in _layers(op, weights, (13, 17)):
        for inputs, state in directions:
            rows = writer.node("allocate", [], [None], outputs=text(x.dtype, (steps, batch, inputs.shape[1])))
            writer.node("recurrent_backward", [dy, rows, _stacked(writer, inputs), _stacked(writer, state)], [None], gates=gates)
    return None


TABLE = {"_cudnn_rnn": _recurrent, "_cudnn_rnn_backward": _recurrent_backward}
