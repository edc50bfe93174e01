"""Types of the compiled module. Attributes are read-only."""
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Union

__version__: str

Path = Union[str, PathLike[str]]

class Estimate:
    """A time with its 80 % interval, in seconds."""
    seconds: float
    low_s: float
    high_s: float
    def __float__(self) -> float: ...

class Kernel:
    """A group of identical kernels; times are for one of them."""
    name: str
    op: str
    phase: str
    dtype: str
    shape: dict[str, int]
    count: int
    latency_s: float
    low_s: float
    high_s: float
    flops: int
    bytes: int
    limit: str
    tile: tuple[int, int] | None
    waves: float
    utilization_ratio: float
    predictor: str
    extrapolated: bool
    extrapolated_feature: str

class MemoryParts:
    weights_bytes: int
    optimizer_bytes: int
    inputs_bytes: int
    cache_bytes: int
    gradients_bytes: int
    activations_bytes: int
    temporaries_bytes: int
    loss_bytes: int

class MemoryRemedy:
    option: str
    value: str
    also: list[tuple[str, str]]
    peak_bytes: int
    fits: bool
    largest_batch: int | None

class Memory:
    """The memory of one GPU, in bytes."""
    peak_bytes: int
    at_peak: MemoryParts
    peak_phase: str
    peak_node: str
    weights_bytes: int
    gradients_bytes: int
    gradient_buckets_bytes: int
    optimizer_bytes: int
    activations_bytes: int
    optimizer_temporaries_bytes: int
    workspace_bytes: int
    framework_bytes: int
    stack: str
    device_bytes: int
    usable_bytes: int
    margin_bytes: int
    fits: bool
    reserved_bytes: int | None
    largest_batch: int | None
    remedies: list[MemoryRemedy]

class LlmMemory:
    """The memory of one rank, in bytes."""
    peak_bytes: int
    weights_bytes: int
    cache_bytes: int
    activations_bytes: int
    workspace_bytes: int
    framework_bytes: int
    overhead_bytes: int
    device_bytes: int
    usable_bytes: int
    fits: bool
    largest_batch: int

class _Result:
    model: str
    gpu: str
    gpu_name: str
    batch: int
    dtype: str
    dtype_source: str
    latency: Estimate
    latency_s: float
    latency_low_s: float
    latency_high_s: float
    flops: int
    bytes: int
    parameters: int
    utilization_ratio: float
    kernels: Any
    """A pandas.DataFrame if pandas is there, else the list `kernel_rows`."""
    kernel_rows: list[Kernel]
    warnings: list[str]
    warning_codes: list[str]
    def to_json(self) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...
    def table(self, width: int = ..., rows: int = ...) -> str: ...
    def plot(self) -> Any: ...
    def _repr_html_(self) -> str: ...

class Forecast(_Result):
    """The forecast of one pass or training step."""
    mode: str
    seq: int
    host_wait_s: float
    forward_s: float
    backward_s: float
    optimizer_s: float
    memory: Memory

class AcceleratorLayer:
    """A layer on an accelerator, `count` times."""
    name: str
    op: str
    where: str
    kind: str
    sizes: str
    fused: list[str]
    mapping: str
    count: int
    cycles: float
    low_cycles: float
    high_cycles: float
    converged: bool
    instructions: float
    evaluated_instructions: int
    macs: int
    bytes: int
    bound: str
    utilization_ratio: dict[str, float]

class AcceleratorForecast:
    """The forecast of a forward pass on an accelerator."""
    model: str
    gpu: str
    gpu_name: str
    parameters: dict[str, float]
    dataflow: str
    dtype: str
    accumulator_dtype: str
    batch: int
    seq: int
    clock_hz: float
    cycles: float
    low_cycles: float
    high_cycles: float
    host_cycles: float
    latency_s: float
    macs: int
    host_macs: int
    pe_count: int
    on_chip_bytes: float
    energy_j: float | None
    utilization_ratio: float
    instructions: float
    evaluated_instructions: int
    layers: list[AcceleratorLayer]
    warnings: list[str]
    def to_json(self) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...
    def mappings(self) -> str: ...
    def table(self, width: int = ..., rows: int = ...) -> str: ...

class Step:
    """One prefill or decode step."""
    latency: Estimate
    host_wait_s: float
    limits: dict[str, float]
    kernel_rows: list[Kernel]

class Distribution:
    mean: Estimate
    median: Estimate
    p99: Estimate

class ServedPart:
    requests: int
    ttft: Distribution
    tpot: Distribution
    e2e: Distribution
    requests_per_s: float
    output_tokens_per_s: float
    total_tokens_per_s: float

class Serving:
    """A server under load."""
    cache_tokens: int
    most_sequences: int
    most_in_flight: int
    all: ServedPart
    steady: ServedPart | None
    goodput_requests_per_s: float | None
    mean_batch: float
    busy_share: float
    cache_use: float
    preemptions: int
    keeps_up: bool
    gpus: int
    replicas: int

class LlmForecast(_Result):
    """The forecast of text generation."""
    kv_dtype: str
    software: str
    prompt: int
    output: int
    tp: int
    pp: int
    dp: int
    ep: int
    gpus: int
    ttft: Estimate
    tpot: Estimate
    request: Estimate
    tokens_per_s: float
    course: list[tuple[int, Estimate]]
    communication_s: float
    active_parameters: int
    multiplied_parameters: int
    flops_per_token: int
    attention_flops_per_token: int
    kv_bytes_per_token: int
    window_bytes_per_token: int
    window_tokens: int
    state_bytes_per_sequence: int
    prefill: Step
    decode: Step
    serving: Serving | None
    memory: LlmMemory

class ForecastTable:
    """Forecasts of the rows of a table; columns by name."""
    column_names: list[str]
    def __len__(self) -> int: ...
    def keys(self) -> list[str]: ...
    def __getitem__(self, name: str) -> list[Any]: ...
    def to_dict(self) -> dict[str, list[Any]]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Option:
    """An option of a forecast."""
    name: str
    kinds: list[str]
    help: str
    unit: str
    default: str
    choices: list[str]

class GpuEntry:
    """A bundled device, with the numbers of its data sheet."""
    id: str
    name: str
    vendor: str
    aliases: list[str]
    memory_bytes: int
    memory_bytes_per_s: float
    sm_count: int
    boost_clock_hz: float
    l2_bytes: int
    power_w: float
    architecture: str
    memory_type: str
    vector_flops_per_s: dict[str, float]
    matrix_flops_per_s: dict[str, float]

class ModelEntry:
    """A bundled model."""
    name: str
    family: str
    parameters: int
    positions: int | None
    note: str

class SizeEntry:
    """A size or setting of an operator's kernel."""
    name: str
    description: str
    other_names: list[str]
    default: str
    choices: list[str]
    min: int
    max: int
    is_switch: bool
    is_list: bool

class OpEntry:
    """An operator."""
    name: str
    pytorch: str
    onnx: str
    description: str
    sizes: list[SizeEntry]

class Model:
    """A model that has been read and checked."""
    name: str

class Gpu:
    """A device that has been read and checked."""
    id: str
    warnings: list[str]

class EvaluationRow:
    """Errors of one GPU, operator and dtype."""
    gpu: str
    op: str
    dtype: str
    software: str
    count: int
    mape_percent: float
    median_percent: float
    p90_percent: float
    bias_ratio: float
    coverage_percent: float

class EvaluationModel:
    """The error of one measured model."""
    gpu: str
    model: str
    mode: str
    seq: int
    batch: int
    dtype: str
    option: str
    measured_s: float
    forecast_s: float
    low_s: float
    high_s: float
    error_percent: float

class Evaluation:
    """Forecasts compared with measurements."""
    rows: list[EvaluationRow]
    models: list[EvaluationModel]
    unmatched: list[str]
    warnings: list[str]
    def to_json(self) -> str: ...

class Forecaster:
    """Forecasts with one set of weights."""
    def __init__(self, weights: Path = "", calibration: Path = "") -> None: ...
    def forecast(self, model: Any, gpu: Path | Gpu | GpuEntry | Mapping[str, Any], *, inputs: Any = None,
                 **options: Any) -> Any: ...
    def forecast_many(self, table: Any, *, threads: int = 0, **options: Any) -> ForecastTable: ...
    def kernel(self, op: str, gpu: Path | Gpu | GpuEntry | Mapping[str, Any], *, dtype: str = ..., software: str = ...,
               predictor: str = ..., warm: bool = ..., clocks: str = ..., **sizes: int | str) -> list[Kernel]: ...
    def evaluate(self, path: str, *, predictor: str = ...) -> Evaluation: ...

def options() -> Sequence[Option]: ...
def gpus() -> list[GpuEntry]: ...
def models() -> list[ModelEntry]: ...
def ops() -> list[OpEntry]: ...
def load_model(name_or_path: str) -> Model: ...
def model_from_text(text: str, name: str) -> Model: ...
def load_gpu(gpu: Path | Gpu | GpuEntry | Mapping[str, Any]) -> Gpu: ...
