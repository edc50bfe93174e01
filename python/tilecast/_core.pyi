"""Types of the compiled module. Attributes are read-only."""
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Union, overload

from typing_extensions import TypedDict, Unpack

__version__: str
__commit__: str
"""The first digits of the commit that was built, "+changes" behind them where files differed from it; "": not known."""

def _run_program(words: Sequence[bytes]) -> int: ...
def _hash_of_embedded_data() -> str: ...

Path = Union[str, PathLike[str]]
ModelLike = Any
"""What tilecast.load_model takes: a name, a path, a config, a torch.nn.Module, a Model."""
GpuLike = Union[Path, Gpu, GpuEntry, Mapping[str, Any]]

class Record:
    """A part of a result."""
    def to_json(self) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...

class _Interval(Record):
    def __float__(self) -> float: ...

class _Step(Record):
    latency: Interval

class _ServerMetrics(Record):
    ttft: Distribution
    """time_to_first_token"""
    tpot: Distribution
    """time_per_output_token"""
    e2e: Distribution
    """end_to_end"""

class _AcceleratorForecast(Record):
    def mappings(self) -> str: ...
    def table(self, width: int = ..., rows: int = ...) -> str: ...

class _Result:
    model: str
    gpu: str
    gpu_name: str
    batch: int
    dtype: str
    dtype_source: str
    latency: Interval
    latency_s: float
    latency_low_s: float
    latency_high_s: float
    flops: int
    bytes: int
    parameters: int
    utilization_ratio: float
    kernels: list[Kernel]
    warnings: list[str]
    warning_codes: list[str]
    def to_json(self) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...
    def table(self, width: int = ..., rows: int = ...) -> str: ...
    def to_pandas(self) -> Any:
        """A pandas.DataFrame of the kernels."""
    def plot(self) -> Any: ...
    def _repr_html_(self) -> str: ...

class _Forecast(Record, _Result): ...

class _GenerationForecast(Record, _Result):
    ttft: Interval
    """time_to_first_token"""
    tpot: Interval
    """time_per_output_token"""

class ForecastTable:
    """Forecasts of the rows of a table; columns by name."""
    column_names: list[str]
    def __len__(self) -> int: ...
    def keys(self) -> list[str]: ...
    def __getitem__(self, name: str) -> list[Any]: ...
    def to_dict(self) -> dict[str, list[Any]]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class SweepSpecColumn:
    """A column of a sweep's spec."""
    name: str
    """an option, or parameters.NAME for a number of the device"""
    type: str
    """integer, number or text"""
    unit: str

class SweepRows:
    """Points of a sweep: a table of options, as forecast_many takes it."""
    indices: list[int]
    rejected: int
    """points that the spec's conditions refuse"""
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class SweepSpec:
    """The points of a sweep: of a file, its text, or a dict with its content."""
    size: int
    """with the points that its conditions refuse"""
    columns: Sequence[SweepSpecColumn]
    text: str
    def __init__(self, spec: Path | Mapping[str, Any]) -> None: ...
    def __len__(self) -> int: ...
    def rows(self, first: int = 0, count: int = ...) -> SweepRows: ...

class Option:
    """An option of a forecast."""
    name: str
    kinds: list[str]
    help: str
    unit: str
    default: str
    choices: list[str]

class Model:
    """A model that has been read and checked."""
    name: str

class Gpu:
    """A device that has been read and checked."""
    id: str
    warnings: list[str]

def options(function: str = "forecast") -> Sequence[Option]: ...
def default_forecaster() -> Forecaster: ...
def _evaluate(text: str, values: Mapping[str, float], where: str) -> float: ...
def _names_in(text: str, where: str) -> list[str]: ...
def _is_whole_number_of_gpu(name: str) -> Union[bool, None]: ...
def load_model(name_or_path: str) -> Model: ...
def model_from_text(text: str, name: str) -> Model: ...
def load_gpu(gpu: GpuLike) -> Gpu: ...

# Results: made by tools/generate.sh, do not edit.

class TrainingRun(Record):
    """Training on a number of tokens, at the rate of one step."""
    tokens: int
    """the option `tokens` [tokens]"""
    steps: float
    """of the batch"""
    days: float
    """without restarts, checkpoints or evaluations [days]"""
    gpu_hours: float
    """of all GPUs together [hours]"""
    energy_kwh: float | None
    """of the GPUs' boards; null: power is not forecast [kWh]"""
    cost: float | None
    """of GPU hours and energy, as far as prices were given; null: none was"""
    carbon_kg: float | None
    """null: `carbon_g_per_kwh` is not given [kg]"""

class GpuPrice(Record):
    """The row of a list or a price table that a cost follows from."""
    table: str
    """name or file of the table; empty: a list of the request"""
    gpu: str
    """GPU or cluster, as the row names it"""
    price_per_gpu_hour: float
    """of one GPU"""
    currency: str
    """empty: not stated"""
    date: str
    """of the price; empty: not stated"""
    guess: bool
    """the price has no source that can be looked up"""
    source: str
    """of the price; empty: not stated"""

class Power(Record):
    """Power and energy of the GPUs' boards, and what they cost; servers and cooling have fields of their own."""
    power_w: float
    """of one GPU, the mean of its time; of a server under load, also while it waits [W]"""
    power_low_w: float
    """80 % interval [W]"""
    power_high_w: float
    """80 % interval [W]"""
    energy_j: float
    """of all GPUs: of one pass or step, of a batch of generated text, of a request of a server under load [J]"""
    energy_low_j: float
    """80 % interval [J]"""
    energy_high_j: float
    """80 % interval [J]"""
    idle_w: float
    """of a GPU that holds its clock and computes nothing [W]"""
    limit_w: float
    """the limit of the board, or the option `power_cap_w` [W]"""
    clock_hz: float
    """of the multiprocessors; where power holds it back, the mean [Hz]"""
    held_back: bool
    """the limit holds the clock below the highest one"""
    power_coverage: float
    """share of the time in kernels whose power was measured on a card of the class, and in waits of such cards; the interval is wider where it is small"""
    energy_per_token_j: float | None
    """null: the input is not tokens [J]"""
    tokens_per_kwh: float | None
    """null: the input is not tokens [1/kWh]"""
    gpu_cost: float | None
    """of energy_j's work at `price_per_gpu_hour`; null: no price was given"""
    energy_cost: float | None
    """of energy_j at `price_per_kwh`; null: no price was given"""
    carbon_g: float | None
    """of energy_j at `carbon_g_per_kwh`; null: not given [g]"""
    cost_per_million_tokens: float | None
    """both costs, as far as prices were given; null: no price, or the input is not tokens"""
    gpu_price: GpuPrice | None
    """the row that gpu_cost follows from, where prices are by GPU"""
    server_energy_j: float | None
    """of the nodes beside their GPUs, by `server_w` of the cluster file, in the share of their GPUs that take part; null: the file does not state it [J]"""
    facility_energy_j: float | None
    """of GPUs and servers with cooling and power supply, by `pue` of the cluster file; null: the file does not state it [J]"""
    facility_energy_cost: float | None
    """of facility_energy_j at `price_per_kwh`, in place of energy_cost, which has the GPUs' boards only; null: no price, or no pue"""

class MemoryParts(Record):
    """Bytes by what they are for."""
    weights_bytes: int
    """parameters and buffers [bytes]"""
    optimizer_bytes: int
    """optimizer states [bytes]"""
    inputs_bytes: int
    """inputs of the model [bytes]"""
    cache_bytes: int
    """keys, values and states of text generation [bytes]"""
    gradients_bytes: int
    """gradients of the parameters [bytes]"""
    activations_bytes: int
    """tensors that are kept from the forward pass for the backward pass [bytes]"""
    temporaries_bytes: int
    """other tensors that nodes compute [bytes]"""
    loss_bytes: int
    """logits and other outputs, the loss and its gradient [bytes]"""

class OptionChange(Record):
    """An option with another value."""
    option: str
    """name of the option"""
    value: str
    """its value"""

class MemoryRemedy(Record):
    """A change of one option, or of several together, and the memory with it."""
    option: str
    """name of the option"""
    value: str
    """its value"""
    also: list[OptionChange]
    """further options that are changed together with the first"""
    peak_bytes: int
    """memory with the same batch [bytes]"""
    fits: bool
    """whether it fits"""
    largest_batch: int | None
    """the largest batch that fits"""

class PassMemory(Record):
    """Memory of one rank in a pass or training step."""
    peak_bytes: int
    """the largest sum over time, with workspace and framework; the parts need not be at their largest then [bytes]"""
    weights_bytes: int
    """parameters and buffers [bytes]"""
    gradients_bytes: int
    """of all parameters, without buckets for their reduction [bytes]"""
    optimizer_bytes: int
    """optimizer states [bytes]"""
    activations_bytes: int
    """the largest sum of tensors that the forward and the backward pass compute, and inputs; over several ranks of all micro-batches in flight; of text generation, of a step [bytes]"""
    workspace_bytes: int
    """workspaces of libraries, and captured CUDA graphs [bytes]"""
    framework_bytes: int
    """context and code of the framework [bytes]"""
    device_bytes: int
    """what programs see of the device's memory [bytes]"""
    usable_bytes: int
    """all of it; of a server at most the budget of its cache's rule and what lies beside [bytes]"""
    margin_bytes: int
    """usable memory less peak; below 0 if it does not fit [bytes]"""
    fits: bool
    """whether the peak does, without fragmentation; of a server, with the longest request, and that prefill and encode workers fit"""
    largest_batch: int | None
    """the largest batch that fits; of a server, sequences of full length; null: none, or not computed"""
    at_peak: MemoryParts
    """what the peak holds, beside workspace and framework"""
    peak_phase: str
    """phase of the peak: forward, backward or optimizer"""
    peak_node: str
    """the operator that runs at the peak"""
    gradient_buckets_bytes: int
    """DistributedDataParallel's buckets, copies of the gradients for their reduction: at_peak.gradients_bytes contains them [bytes]"""
    optimizer_temporaries_bytes: int
    """the largest sum of tensors that the optimizer step computes beside its states [bytes]"""
    host_optimizer_bytes: int
    """with optimizer-offload, what the host keeps of this rank: states, fp32 parameters and gradients [bytes]"""
    stack: str
    """the software that workspace and framework are of"""
    reserved_bytes: int | None
    """what the caching allocator takes at most, with workspace and framework, if the peak hardly fits [bytes]"""
    remedies: list[MemoryRemedy]
    """if it does not fit: the memory after changing one option, the smallest peak first; then of several together, if none alone is enough"""

class Kernel(Record):
    """A group of identical kernels. Times and work are those of one of them."""
    name: str
    """name in the model, of the first of identical kernels"""
    op: str
    """operator of 'tilecast ops'"""
    phase: str
    """the part of the step that runs it"""
    dtype: str
    """dtype of the operands, with the dtype of keys and values or the quantization scheme of weights if it differs"""
    shape: dict[str, int]
    """sizes of the kernel, by the names of its type"""
    count: int
    """number of identical kernels"""
    latency_s: float
    """time of one kernel [s]"""
    low_s: float
    """80 % interval [s]"""
    high_s: float
    """80 % interval [s]"""
    total_s: float
    """time of all of them [s]"""
    flops: int
    """work of one kernel [FLOP]"""
    bytes: int
    """memory traffic of one kernel [bytes]"""
    flops_per_byte: float | None
    """arithmetic intensity; null: no memory traffic [FLOP/byte]"""
    flops_per_s: float | None
    """work over the forecast; null: it takes no time [FLOP/s]"""
    limit: str
    """what limits it"""
    tile: tuple[int, int] | None
    """rows and columns of the output that a block computes by the law; not measured: a library may take others"""
    waves: float
    """rounds of such blocks over the device"""
    sm_share: float
    """mean share of the SMs that has a block in these rounds; 0: no blocks"""
    utilization_ratio: float
    """the shortest time that the data sheet allows, divided by the forecast"""
    predictor: str
    """name of the cost model"""
    extrapolated: bool
    """outside the training range"""
    extrapolated_feature: str | None
    """the feature that is furthest outside the training range, or what was not measured: model, dtype, scheme, software, architecture, combination, batch, backward, convolution, vendor or law (docs/explanation/laws.md); only if extrapolated"""

class Roof(Record):
    """What the data sheet allows kernels that compute in one dtype."""
    dtype: str
    """that they compute in"""
    flops_per_s: float
    """of the faster unit, at the boost clock [FLOP/s]"""
    bytes_per_s: float
    """of the memory [bytes/s]"""

class IntervalParts(Record):
    """What the interval of a step joins."""
    model_low_s: float
    """lower end of the interval of a mean run: how wrong the times of kernels, exchanges and software may be [s]"""
    model_high_s: float
    """its upper end [s]"""
    machine_spread_ratio: float
    """80 % of runs of one step, on other nodes of the kind and other days, lie within this share of their mean [1]"""

class Stage(Record):
    """One rank of one pipeline stage. Compute, exposed communication and bubble sum up to the latency."""
    stage: int
    """number of the stage"""
    layers: int
    """layers of the model on the stage"""
    forward_s: float
    """of one micro-batch, with the collectives inside [s]"""
    backward_s: float
    """of one micro-batch, with the collectives inside [s]"""
    optimizer_s: float
    """the optimizer step [s]"""
    gradient_copies_s: float
    """copies of gradients into the buckets that are reduced, and back [s]"""
    slowed_s: float
    """what reductions that occupy multiprocessors add to the backward pass [s]"""
    compute_s: float
    """all passes without the collectives inside, copies of gradients, what slows kernels down, and the optimizer [s]"""
    communication_s: float
    """all collectives and messages, hidden or not [s]"""
    exposed_communication_s: float
    """communication while nothing is computed [s]"""
    bubble_s: float
    """waiting for other stages [s]"""
    peak_bytes: int
    """the largest sum over time, with workspace and framework; the parts need not be at their largest then [bytes]"""
    weights_bytes: int
    """parameters and buffers [bytes]"""
    gradients_bytes: int
    """of all parameters, without buckets for their reduction [bytes]"""
    optimizer_bytes: int
    """optimizer states [bytes]"""
    activations_bytes: int
    """the largest sum of tensors that the forward and the backward pass compute, and inputs; over several ranks of all micro-batches in flight; of text generation, of a step [bytes]"""

class RankTables(Record):
    """The embedding tables of one rank of a recommendation model."""
    rank: int
    """number of the rank"""
    parts: int
    """tables and parts of tables"""
    bytes: int
    """of their rows and optimizer states [bytes]"""
    lookups: float
    """of a batch"""
    forward_s: float
    """time of the lookups [s]"""
    backward_s: float
    """with the sparse optimizer [s]"""
    sent_bytes: float
    """sums that the rank sends, those to itself included [bytes]"""

class StepPart(Record):
    """What a rank of a recommendation model computes or exchanges in a step."""
    name: str
    """lookups, ids, …"""
    runs_on: str
    """what is busy; parts on the GPU and on its links overlap"""
    seconds: float
    """how long it takes, of the rank where it takes longest [s]"""
    start_s: float
    """when the first rank starts, from the start of the step [s]"""
    end_s: float
    """when the last rank is done [s]"""

class DiffusionPart(Record):
    """A network of a pipeline, as it runs for one batch."""
    part: str
    """name in the pipeline; with tiles, of one size of them"""
    stage: str
    """when it runs: encode, denoise or decode"""
    runs: int
    """in the whole batch"""
    run_s: float
    """of one run [s]"""
    total_s: float
    """of all runs [s]"""
    parameters: int
    """of the network"""
    run_flops: int
    """work of one run, on one GPU [FLOP]"""

class Diffusion(Record):
    """A batch of images or videos of a diffusion pipeline."""
    steps: int
    """of the denoiser"""
    height: int
    """of an image or frame [pixels]"""
    width: int
    """of an image or frame [pixels]"""
    frames: int | None
    """of a video; null: images"""
    fps: float | None
    """frames that are played in a second; null: images [1/s]"""
    guidance: float
    """scale of guidance"""
    passes: int
    """samples of the denoiser for each output and step: 2 with classifier-free guidance"""
    ranks: int
    """GPUs that share the batch"""
    encode_s: float
    """text encoders [s]"""
    step_s: float
    """one step of the denoiser [s]"""
    decode_s: float
    """decoder of the latents [s]"""
    communication_s: float
    """exchanges of the ranks that are not hidden [s]"""
    outputs_per_s: float
    """images or videos [1/s]"""
    seconds_per_output: float
    """the batch latency over the outputs [s]"""
    seconds_per_video_second: float | None
    """the same for each second that is played; null: images"""
    energy_per_output_j: float | None
    """of all GPUs; null: power is not forecast [J]"""
    parts: list[DiffusionPart]
    """the networks in the order that they run in"""

class LaunchLine(Record):
    """A command that starts software as the forecast or plan has it."""
    software: str
    """megatron, torchtitan or a server"""
    command: str
    """without the model's own options"""
    without: str
    """options that no flag of the software sets"""

class Forecast(_Forecast):
    """The forecast of one pass or training step."""
    schema_version: int
    """of this schema"""
    model: str
    """name of the model"""
    gpu: str
    """id of the GPU"""
    gpu_name: str
    """the product name"""
    mode: str
    """inference is one forward pass; training is forward, backward and optimizer step"""
    batch: int
    """sequences over all ranks"""
    seq: int
    """length of a sequence [tokens]"""
    dtype: str
    """the dtype that was used, as in --dtype; schemes of different layers are joined by +"""
    dtype_source: str
    """where the dtype comes from: asked, default, graph, or the field or file of the checkpoint that states it"""
    latency_s: float
    """time of the whole pass [s]"""
    latency_low_s: float
    """80 % interval [s]"""
    latency_high_s: float
    """80 % interval [s]"""
    host_wait_s: float
    """time that the GPU waits for the host to launch kernels [s]"""
    forward_s: float
    """forward, backward and optimizer sum up to the latency; of a training step over several ranks, they are those of the stage that computes longest, without communication, and sum up to the latency with gradient_copies_s, slowed_s, exposed_communication_s and bubble_s; those of recommendation models contain the communication that is exposed [s]"""
    backward_s: float
    """see forward_s [s]"""
    optimizer_s: float
    """see forward_s [s]"""
    flops: int
    """work of all kernels; over several ranks, of the mean rank, whatever the skew [FLOP]"""
    bytes: int
    """memory traffic of all kernels; over several ranks, of the mean rank, as without skew [bytes]"""
    parameters: int
    """parameters of the model"""
    model_flops: int
    """flops without what is computed again: activation checkpointing, and the scores in the backward pass of fused attention [FLOP]"""
    utilization_ratio: float
    """HFU, hardware FLOPs utilization: flops / (latency x peak FLOP/s of the device for the dtype)"""
    mfu_ratio: float
    """MFU, model FLOPs utilization: the same of model_flops"""
    gpu_flops_per_s: float | None
    """of training: model_flops over the latency, of one GPU [FLOP/s]"""
    tokens_per_s: float | None
    """of training, on all GPUs; of models with an encoder for texts, the encoder's tokens; null: the input is not tokens [1/s]"""
    gpu_tokens_per_s: float | None
    """the same over the number of GPUs [1/s]"""
    training_run: TrainingRun | None
    """training on the option `tokens`; null: not given"""
    power: Power | None
    """null: the device file states no board power, the GPU is divided, or the model has embedding tables on several ranks"""
    memory: PassMemory
    """over several ranks: of the rank that needs most"""
    kernels: list[Kernel]
    """over several ranks: of one rank of each stage, over all micro-batches"""
    roofs: list[Roof]
    """what the data sheet allows, for each dtype that kernels compute in"""
    cluster: str | None
    """id of the cluster"""
    nodes: int | None
    """nodes of the cluster that take part"""
    ranks: int | None
    """GPUs that take part"""
    micro_batch_size: int | None
    """sequences of a micro-batch"""
    microbatches: int | None
    """of each data-parallel rank"""
    virtual_stages: int | None
    """parts of the model on each pipeline stage"""
    slowest_stage: int | None
    """the stage that computes longest: the next five are its times, as are forward_s, backward_s and optimizer_s"""
    communication_s: float | None
    """collectives and messages, hidden or not, of the slowest stage [s]"""
    exposed_communication_s: float | None
    """communication while nothing is computed, of the slowest stage [s]"""
    bubble_s: float | None
    """waiting for other stages, of the slowest stage [s]"""
    gradient_copies_s: float | None
    """copies of gradients into the buckets that are reduced, and back, part of the compute time of the slowest stage [s]"""
    slowed_s: float | None
    """what reductions that occupy multiprocessors add to the backward pass, part of the compute time of the slowest stage [s]"""
    simulated_ranks: int | None
    """ranks that were simulated; the others do the same at the same time"""
    padded_vocab_size: int | None
    """what tensor-parallel ranks divide; left out: the vocabulary as it is [tokens]"""
    interval_parts: IntervalParts | None
    """what the interval of the step joins, of training on several ranks (recommendation models aside); else there is no such key"""
    stages: list[Stage] | None
    """one rank of each pipeline stage"""
    rank_tables: list[RankTables] | None
    """the embedding tables of each rank of a recommendation model; other models have no such key"""
    step_parts: list[StepPart] | None
    """when the parts of a step of a recommendation model run; other models have no such key"""
    diffusion: Diffusion | None
    """a batch of a diffusion pipeline; other models have no such key"""
    options: dict[str, int | float | str]
    """the request with all defaults: values by the names of the command-line options (with _ for -), in their units; options without a value are omitted"""
    launch: list[LaunchLine]
    """commands that start such a training; empty: none is known"""
    assumptions: list[str]
    """what matters to the numbers, given or by default: dtype and where it comes from, attention, optimizer and its states, loss, recomputation, fusion, software, clock"""
    warnings: list[str]
    """sentences that readers of the numbers should know"""
    warning_codes: list[str]
    """code of each warning, in the order of warnings"""

class Interval(_Interval):
    """A time with its 80 % interval."""
    seconds: float
    """forecast [s]"""
    low_s: float
    """80 % interval [s]"""
    high_s: float
    """80 % interval [s]"""

class CoursePoint(Record):
    """A decode step at one length of the cache."""
    kv_tokens: int
    """in the cache of each sequence [tokens]"""
    seconds: float
    """forecast [s]"""
    low_s: float
    """80 % interval [s]"""
    high_s: float
    """80 % interval [s]"""

class Memory(Record):
    """Memory of one rank."""
    peak_bytes: int
    """the largest sum over time, with workspace and framework; the parts need not be at their largest then [bytes]"""
    weights_bytes: int
    """parameters and buffers [bytes]"""
    gradients_bytes: int
    """of all parameters, without buckets for their reduction [bytes]"""
    optimizer_bytes: int
    """optimizer states [bytes]"""
    activations_bytes: int
    """the largest sum of tensors that the forward and the backward pass compute, and inputs; over several ranks of all micro-batches in flight; of text generation, of a step [bytes]"""
    cache_bytes: int
    """keys, values and states of text generation; a server reserves all that it may use [bytes]"""
    workspace_bytes: int
    """workspaces of libraries, and captured CUDA graphs [bytes]"""
    framework_bytes: int
    """context and code of the framework [bytes]"""
    overhead_bytes: int
    """workspace plus framework [bytes]"""
    device_bytes: int
    """what programs see of the device's memory [bytes]"""
    usable_bytes: int
    """all of it; of a server at most the budget of its cache's rule and what lies beside [bytes]"""
    margin_bytes: int
    """usable memory less peak; below 0 if it does not fit [bytes]"""
    fits: bool
    """whether the peak does, without fragmentation; of a server, with the longest request, and that prefill and encode workers fit"""
    largest_batch: int | None
    """the largest batch that fits; of a server, sequences of full length; null: none, or not computed"""

class CachePool(Record):
    """The cache of a server on one rank as its software sizes it at the start."""
    rule: str
    """the software's option, e.g. gpu_memory_utilization"""
    fraction: float
    """its value"""
    visible_bytes: int
    """memory that programs see: without the driver's [bytes]"""
    budget_bytes: int
    """what the rule allows for weights, activations and cache [bytes]"""
    weights_bytes: int
    """weights of one rank [bytes]"""
    profile_bytes: int
    """peak of activations that the software measures or assumes [bytes]"""
    non_torch_bytes: int
    """memory of libraries that the software counts [bytes]"""
    graphs_bytes: int
    """captured CUDA graphs, beside the budget [bytes]"""
    cache_bytes: int
    """what is left for the cache [bytes]"""
    block_tokens: int
    """tokens of a block [tokens]"""
    blocks: int
    """blocks of the cache"""
    tokens: int
    """size of the cache, as vLLM's log has it [tokens]"""
    max_model_len: int
    """longest sequence that the server accepts [tokens]"""
    concurrency: float
    """sequences of max_model_len that fit: vLLM's maximum concurrency"""

class Step(_Step):
    """One prefill or decode step, or one run of the vision tower."""
    latency_s: float
    """time of the step [s]"""
    low_s: float
    """80 % interval [s]"""
    high_s: float
    """80 % interval [s]"""
    host_wait_s: float
    """time that the GPU waits for the host to launch kernels [s]"""
    limits: dict[str, float]
    """share of the kernels' time by what limits them: compute, memory, latency or network"""
    kernels: list[Kernel]
    """the kernels of the step"""

class Vision(Record):
    """The vision tower beside the language model, on one rank."""
    parameters: int
    """of the whole tower with its projector, beside the language model's parameters"""
    weights_bytes: int
    """of one rank; part of the memory's weights_bytes, also without images, unless encode workers have the tower [bytes]"""
    images: int
    """of each prompt; 0: the tower does not run"""
    image_side: int
    """after the processor's resizing; 0: no images [pixels]"""
    image_tokens: int
    """that one image adds to the prompt [tokens]"""
    prompt_tokens: int
    """that all images add to a prompt [tokens]"""
    images_together: int
    """images that the tower gets at once, at most"""
    time: Interval
    """of the tower for all prompts; part of time_to_first_token; of encode workers, on the one with the most images"""
    step: Step | None
    """one run of the tower; null: no images"""

class Drafts(Record):
    """Speculative decoding."""
    method: str
    """what makes the drafts: draft_model, mtp (the model's own layers), ngram, eagle or eagle3"""
    model: str | None
    """the model that makes the drafts; null: the method needs none"""
    tokens: int
    """of a draft [tokens]"""
    acceptance_rate: float
    """of a token, if those before it are accepted"""
    acceptance_source: str
    """"given", or where the default is from"""
    tokens_per_step: float
    """that a step of a sequence writes on average [tokens]"""
    time: Interval
    """of the drafts of one step, part of the step's time"""
    weights_bytes: int
    """of one rank, part of the memory's weights_bytes [bytes]"""

class Adapters(Record):
    """The low-rank adapters (LoRA) of a server's requests."""
    adapters: int
    """different ones"""
    rank: int
    """of each"""
    max_loras: int
    """in one step, for which memory is kept"""
    max_lora_rank: int
    """that memory is kept for"""
    bytes: int
    """of one adapter on a rank of the GPU [bytes]"""
    reserved_bytes: int
    """kept for adapters on a rank of the GPU [bytes]"""
    load_s: float
    """to bring one adapter from the host's memory [s]"""

class Distribution(Record):
    """Mean, median and 99th percentile over requests."""
    mean: Interval
    """over all requests"""
    median: Interval
    """of all requests"""
    p99: Interval
    """the 99th percentile"""

class ServerMetrics(_ServerMetrics):
    """What the clients of a server see, over one part of the run."""
    requests: int
    """number of answered requests"""
    time_to_first_token: Distribution
    """from sending a request to its first token"""
    time_per_output_token: Distribution
    """(last token - first token) / (output - 1)"""
    end_to_end: Distribution
    """from sending a request to its last token"""
    requests_per_s: float
    """answered requests [1/s]"""
    output_tokens_per_s: float
    """output tokens [1/s]"""
    total_tokens_per_s: float
    """prompt and output tokens [1/s]"""

class PrefillPool(Record):
    """The workers that compute prompts only."""
    workers: int
    """how many"""
    tp: int
    """of each"""
    pp: int
    """of each"""
    dp: int
    """of each"""
    ep: int
    """of each"""
    gpus: int
    """of each"""
    peak_bytes: int
    """memory of one of their ranks [bytes]"""
    cache_tokens: int
    """capacity of one worker's cache [tokens]"""
    busy_share: float
    """of the time that a worker works"""
    transfer_s: float
    """from the end of a prefill of mean length to the other pool's having the cache, on an idle link [s]"""
    mean_transfer_s: float
    """the same, mean of all requests, with waiting for the link [s]"""

class EncodePool(Record):
    """The workers that run the vision tower only."""
    workers: int
    """how many"""
    tp: int
    """of each"""
    gpus: int
    """of each"""
    peak_bytes: int
    """memory of one of their ranks [bytes]"""
    images_together: int
    """images in a run, at most"""
    mean_images: float
    """images in a run, mean"""
    busy_share: float
    """of the time that a worker works"""
    transfer_s: float
    """from the end of the runs for one prompt to a server's having its images' tokens, on an idle link [s]"""
    mean_encode_s: float
    """from a request's coming to a server's having its images' tokens, mean of all requests with images, with all waiting [s]"""

class PrefixCache(Record):
    """What a server's prefix cache found, kept and lost."""
    hit_ratio: float
    """share of the prompts' tokens that the GPU's cache had"""
    host_hit_ratio: float
    """share of the prompts' tokens that the host's memory had"""
    most_hit_ratio: float
    """the same for one cache of any size, to which each request comes after those before it are answered"""
    hit_tokens: int
    """of prompts, that the GPU's cache had [tokens]"""
    host_hit_tokens: int
    """of prompts, that the host's memory had [tokens]"""
    evicted_tokens: int
    """that the GPU's caches lost to other requests [tokens]"""
    cached_tokens: int
    """that the GPU's caches keep at the end [tokens]"""
    host_capacity_tokens: int
    """that the host's memory has room for, in each server [tokens]"""
    host_cached_tokens: int
    """that the host's memory keeps at the end, in all servers [tokens]"""
    host_bytes_per_s: float
    """at which a server's GPUs read the host's memory [B/s]"""

class TracedRequest(Record):
    """When a request of a trace came and was answered."""
    arrival_s: float
    """since the start of the trace, as all three [s]"""
    first_token_s: float
    """the first token is there [s]"""
    last_token_s: float
    """the last token is there [s]"""

class Serving(Record):
    """A server under load."""
    rate: float | None
    """requested load in requests; null: not given [1/s]"""
    concurrency: int | None
    """requested number of clients; null: not given"""
    trace: bool
    """the requests came from a file"""
    requests: int
    """number of simulated requests that are counted"""
    warmup_requests: int
    """requests that were sent before those: conversations with a rate begin without the turns before them"""
    max_num_seqs: int
    """sequences in a step of one data-parallel rank, at most"""
    max_num_batched_tokens: int
    """in a step of one data-parallel rank, at most [tokens]"""
    cache_tokens: int
    """capacity of the cache of one server [tokens]"""
    most_sequences: int
    """how many sequences of the longest length fit into the cache"""
    most_in_flight: int
    """maximum number of requests that waited or ran at the same time"""
    all: ServerMetrics
    """all requests"""
    steady: ServerMetrics | None
    """without the first and the last most_in_flight requests, which saw the server fill up or empty; null: too few requests are left"""
    requests_per_s: float
    """answered requests [1/s]"""
    tokens_per_s: float
    """output tokens [1/s]"""
    goodput_requests_per_s: float | None
    """requests that met the limits, over the whole run; null: no limits [1/s]"""
    gpus: int
    """of all servers, prefill and encode workers included"""
    replicas: int
    """equal servers behind a router"""
    prefill_pool: PrefillPool | None
    """workers that compute prompts only"""
    encode_pool: EncodePool | None
    """workers that run the vision tower only"""
    tokens_per_s_per_gpu: float
    """output tokens [1/s]"""
    total_tokens_per_s_per_gpu: float
    """prompt and output tokens [1/s]"""
    goodput_requests_per_s_per_gpu: float | None
    """requests that met the limits [1/s]"""
    ttft_s: float | None
    """limit on the time to first token [s]"""
    tpot_s: float | None
    """limit on the time per output token [s]"""
    inter_token_latency: Distribution | None
    """between two tokens of a stream, over all tokens of the run; null: outputs of one token"""
    mean_batch: float
    """mean number of sequences in a decode step"""
    busy_share: float
    """share of the time that the server computes"""
    cache_use: float
    """mean share of the cache in use"""
    preemptions: int
    """sequences that were put back for lack of cache"""
    adapter_loads: int | None
    """low-rank adapters that came from the host's memory; null: requests have none"""
    mean_adapters: float | None
    """different low-rank adapters in a step, on average; null: requests have none"""
    prefix_cache: PrefixCache | None
    """what requests found of prompts and answers before them; null: nothing is known of what they have in common, or the server keeps nothing"""
    keeps_up: bool
    """the queue does not grow without bound"""
    traced_requests: list[TracedRequest]
    """each request of a trace, in the order of arrival"""

class GenerationForecast(_GenerationForecast):
    """The forecast of text generation."""
    schema_version: int
    """of this schema"""
    model: str
    """name of the model"""
    gpu: str
    """id of the GPU"""
    gpu_name: str
    """the product name"""
    mode: str
    """inference"""
    schedule: str
    """a static batch, or a server with continuous batching"""
    prompt: int
    """length of the prompt, without images; the mean for a server with varying lengths [tokens]"""
    output: int
    """length of the output, including the first token [tokens]"""
    batch: int
    """sequences in the batch"""
    seq: int
    """prompt, images and output [tokens]"""
    tp: int
    """tensor-parallel ranks, which share each layer"""
    pp: int
    """pipeline stages, which share the layers"""
    dp: int
    """data-parallel ranks of attention in one server"""
    ep: int
    """expert-parallel ranks"""
    gpus: int
    """GPUs of all servers, prefill and encode workers included"""
    dtype: str
    """dtype or quantization scheme of the weights"""
    dtype_source: str
    """where the dtype comes from: asked, default, graph, or the field or file of the checkpoint that states it"""
    kv_dtype: str
    """dtype of the KV cache"""
    software: str
    """whose kernels and scheduler: a value of --software"""
    latency_s: float
    """static: from the first prompt token to the last output token of the batch; continuous: mean end-to-end time of a request, over all requests [s]"""
    latency_low_s: float
    """80 % interval [s]"""
    latency_high_s: float
    """80 % interval [s]"""
    forward_s: float
    """the time of the request [s]"""
    backward_s: float
    """0: none [s]"""
    optimizer_s: float
    """0: none [s]"""
    time_to_first_token: Interval
    """from the arrival of the prompts until all sequences have a token; of a server, of a single request of mean lengths when idle, as the next two"""
    time_per_output_token: Interval
    """mean over the tokens after the first"""
    request: Interval
    """from the arrival to the last token"""
    course: list[CoursePoint]
    """time of a decode step by the length of the cache, in the middle of each part of the output"""
    tokens_per_s: float
    """output tokens of all sequences; of a server under load, in its steady part, or of the whole run where it has none [1/s]"""
    tokens_per_s_per_gpu: float
    """the same per GPU: under load of all servers and workers, else of one server [1/s]"""
    flops: int
    """work of one rank, with `skew` of the one with the busiest experts; with a pipeline the mean over its stages; without that of encode workers [FLOP]"""
    bytes: int
    """memory traffic of one rank [bytes]"""
    utilization_ratio: float
    """FLOPs / (latency x peak FLOP/s of the device for the compute dtype)"""
    parameters: int
    """of the language model, which names of models count"""
    active_parameters: int
    """parameters that one token uses, embedding table included"""
    multiplied_parameters: int
    """active parameters without embedding tables that are only looked up"""
    flops_per_token: int
    """of a sequence in a decode step right after the prompt, attention included [FLOP]"""
    attention_flops_per_token: int
    """of these, in attention [FLOP]"""
    kv_bytes_per_token: int
    """KV cache over all ranks, each head counted once: what a token adds while all layers keep it [bytes]"""
    window_bytes_per_token: int
    """of these, the bytes of layers that keep the last tokens only [bytes]"""
    window_tokens: int
    """how many tokens these keep at most; 0: there are none [tokens]"""
    state_bytes_per_sequence: int
    """of recurrent layers, over all ranks [bytes]"""
    memory: Memory
    """memory of one rank"""
    cache_pool: CachePool | None
    """the cache of a server on one rank as its software sizes it; null for PyTorch"""
    vision: Vision | None
    """the vision tower beside the language model; null: the model has none, or it is not forecast"""
    drafts: Drafts | None
    """speculative decoding; null: none"""
    adapters: Adapters | None
    """low-rank adapters of requests (LoRA); null: none"""
    prefill: Step
    """the prefill step with the most tokens"""
    decode: Step
    """the step in the middle of the output"""
    power: Power | None
    """of `request`, the batch or the single request; null: the device file states no board power, or the GPU is divided"""
    kernels: list[Kernel]
    """all kernels of one rank, with a pipeline of one of each stage; the decode step in the middle of each part of the output stands for all of that part"""
    roofs: list[Roof]
    """what the data sheet allows, for each dtype that kernels compute in"""
    ranks: int | None
    """GPUs of one server: tp x pp x dp; of one GPU left out, as the next four"""
    cluster: str | None
    """id of the cluster"""
    communication_s: float | None
    """of one rank with others; not overlapped with computation [s]"""
    exposed_communication_s: float | None
    """the same [s]"""
    bubble_s: float | None
    """0: none [s]"""
    serving: Serving | None
    """a server under load; null: a static batch, or the longest request does not fit"""
    options: dict[str, int | float | str]
    """the request with all defaults: values by the names of the command-line options (with _ for -), in their units; options without a value are omitted"""
    launch: list[LaunchLine]
    """the command that starts such a server; empty: none is known"""
    assumptions: list[str]
    """what matters to the numbers, given or by default: dtypes of weights and cache, software, steps, share of the memory, load of experts, clock"""
    warnings: list[str]
    """sentences that readers of the numbers should know"""
    warning_codes: list[str]
    """code of each warning, in the order of warnings"""

class AcceleratorLayer(Record):
    """A layer on an accelerator; identical layers are one row."""
    name: str
    """in the model"""
    op: str
    """operator"""
    where: str
    """"store": applied as the layer before it stores its outputs, without cycles of its own"""
    count: int
    """number of identical layers"""
    cycles: float
    """of one [cycles]"""
    low_cycles: float
    """between the two without a fixed point [cycles]"""
    high_cycles: float
    """between the two without a fixed point [cycles]"""
    converged: bool
    """whether it reached a fixed point"""
    instructions: float
    """of one"""
    evaluated_instructions: int
    """that were run to know the rest"""
    macs: int
    """multiplications of one, those of the host as well"""
    bytes: int
    """moved to and from memory outside the chip [bytes]"""
    energy_j: float | None
    """of one; null: the description states no energy [J]"""
    bound: str
    """what limits it"""
    mapping: str
    """how it is tiled and ordered"""
    kind: str
    """of the layer"""
    sizes: str
    """of its loops"""
    fused: list[str]
    """operators that its store applies"""
    utilization_ratio: dict[str, float]
    """share of the time that each object is busy"""

class AcceleratorForecast(_AcceleratorForecast):
    """The forecast of a forward pass on an accelerator."""
    schema_version: int
    """of this schema"""
    model: str
    """name of the model"""
    gpu: str
    """id of the accelerator"""
    gpu_name: str
    """its name"""
    parameters: dict[str, float]
    """of the description"""
    dataflow: str
    """of the description"""
    dtype: str
    """of operands"""
    accumulator_dtype: str
    """of sums"""
    mode: str
    """inference"""
    batch: int
    """sequences"""
    seq: int
    """length of a sequence [tokens]"""
    clock_hz: float
    """of the accelerator [Hz]"""
    cycles: float
    """of the pass [cycles]"""
    low_cycles: float
    """between the two without a fixed point [cycles]"""
    high_cycles: float
    """between the two without a fixed point [cycles]"""
    host_cycles: float
    """of operators that the accelerator does not run [cycles]"""
    latency_s: float
    """time of the pass [s]"""
    latency_low_s: float
    """between the two without a fixed point [s]"""
    latency_high_s: float
    """between the two without a fixed point [s]"""
    macs: int
    """multiplications of the pass"""
    host_macs: int
    """of these, on the host"""
    pe_count: int
    """multipliers"""
    on_chip_bytes: float
    """memories of the chip [bytes]"""
    energy_j: float | None
    """of the pass; null: the description states no energy [J]"""
    utilization_ratio: float
    """multiplications / (cycles x multipliers)"""
    instructions: float
    """of the pass"""
    evaluated_instructions: int
    """that were run to know the rest"""
    layers: list[AcceleratorLayer]
    """rows of identical layers"""
    warnings: list[str]
    """sentences that readers of the numbers should know"""

class ComparedGpu(Record):
    """The forecast on one GPU, or why there is none."""
    gpu: str
    """id of the GPU"""
    gpu_name: str
    """the product name"""
    usable_bytes: int | None
    """what a program can use of the GPU's memory; the peak must fit into it [bytes]"""
    latency_s: float | None
    """time of the pass or of the request; of a server under load, mean time of a request [s]"""
    latency_low_s: float | None
    """80 % interval [s]"""
    latency_high_s: float | None
    """80 % interval [s]"""
    forward_s: float | None
    """of a pass [s]"""
    backward_s: float | None
    """of a training step [s]"""
    optimizer_s: float | None
    """of a training step [s]"""
    ttft_s: float | None
    """time to first token; of a server under load, 99th percentile of the steady part [s]"""
    tpot_s: float | None
    """time per output token; of a server under load, 99th percentile of the steady part [s]"""
    tokens_per_s: float | None
    """output tokens of all sequences; of a server under load, in the steady part [1/s]"""
    flops: int | None
    """as in the forecast of one GPU: of a pass, or of one rank's prefill and decode [FLOP]"""
    bytes: int | None
    """memory traffic, as flops [bytes]"""
    parameters: int | None
    """parameters of the model"""
    utilization_ratio: float | None
    """FLOPs / (latency x peak FLOP/s of the device for the dtype)"""
    power_w: float | None
    """of one GPU's board, the mean of its time [W]"""
    energy_j: float | None
    """of all GPUs' boards: of a pass or step, of a batch of generated text, of a request of a server under load [J]"""
    energy_per_token_j: float | None
    """that of a token [J]"""
    cost: float | None
    """of energy_j's work: GPUs and energy, as far as prices were given"""
    cost_per_million_tokens: float | None
    """the same of tokens"""
    peak_bytes: int | None
    """memory of one rank [bytes]"""
    fits: bool | None
    """whether it fits"""
    dtype: str | None
    """the dtype that was used"""
    error: str | None
    """why there is no forecast; all numbers are null then"""
    ttft: Interval | None
    """of a server under load: 99th percentile of the steady part"""
    tpot: Interval | None
    """of a server under load: 99th percentile of the steady part"""
    goodput_requests_per_s: float | None
    """requests that meet the limits on TTFT and TPOT; null: no limits were given [1/s]"""
    keeps_up: bool | None
    """whether a server keeps up with the load; its times grow with the length of the run if it does not"""
    memory_is_tight: bool | None
    """of a pass: it fits, but less than a tenth of the peak is free, which the caching allocator may be unable to use"""
    overlaps_row_above: bool | None
    """the 80 % intervals of latency_s of this GPU and of the one before it overlap: which of the two is faster is not certain. null: it is the first of those that fit, or of those that do not, or one of the two has no time that can be compared"""
    warnings: list[str]
    """sentences that readers of the numbers should know"""
    warning_codes: list[str]
    """code of each warning, in the order of warnings"""

class GpuComparison(Record):
    """The same request on several GPUs."""
    schema_version: int
    """of this schema"""
    kind: str
    """gpu_comparison"""
    model: str
    """name of the model"""
    gpus_each: int
    """GPUs of each kind that the request uses"""
    assumptions: list[str]
    """what matters to the numbers, as in a forecast; of the first GPU given"""
    gpus: list[ComparedGpu]
    """those that fit, then those that do not, then those without a forecast; servers that keep up with the load come before those that do not, a higher goodput before a lower one; else the fastest first, or where prices are by GPU the cheapest"""
    gpu_prices: list[GpuPrice] | None
    """the rows that costs follow from, where prices are by GPU"""
    options: dict[str, int | float | str]
    """the request with all defaults: values by the names of the command-line options (with _ for -), in their units; options without a value are omitted"""

class ComparedForecast(Record):
    """One of two forecasts that are compared."""
    name: str
    """as it was asked for"""
    model: str
    """name of the model"""
    gpu: str
    """id of the GPU"""
    dtype: str
    """the dtype that was used"""
    latency_s: float
    """time of the pass or of the request [s]"""
    latency_low_s: float
    """80 % interval [s]"""
    latency_high_s: float
    """80 % interval [s]"""
    ttft_s: float | None
    """time to first token; of a server under load the p99 of its steady part [s]"""
    tpot_s: float | None
    """time per output token, likewise [s]"""
    tokens_per_s: float | None
    """of training, or written [1/s]"""
    peak_bytes: int
    """memory of one GPU [bytes]"""
    fits: bool
    """whether it fits"""

class OptionDifference(Record):
    """An option whose values differ."""
    option: str
    """its name"""
    a: str
    """in the first; empty: none"""
    b: str
    """in the second; empty: none"""

class KernelDifference(Record):
    """What both forecasts spend on kernels of one phase and name, all layers together."""
    phase: str
    """the part of the step that runs them"""
    name: str
    """in the model, without the number of the layer"""
    op: str
    """operator of 'tilecast ops'"""
    a_s: float | None
    """in the first; null: it has none [s]"""
    b_s: float | None
    """in the second; null: it has none [s]"""
    difference_s: float
    """second less first [s]"""
    a_count: int
    """kernels of the first"""
    b_count: int
    """kernels of the second"""

class MemoryDifference(Record):
    """A part of the memory in both forecasts."""
    name: str
    """of the part"""
    a_bytes: int
    """in the first [bytes]"""
    b_bytes: int
    """in the second [bytes]"""
    difference_bytes: int
    """second less first [bytes]"""

class Comparison(Record):
    """Two forecasts side by side."""
    schema_version: int
    """of this schema"""
    a: ComparedForecast
    """the first"""
    b: ComparedForecast
    """the second"""
    ratio: float
    """latency of the second over that of the first"""
    overlaps: bool
    """the 80 % intervals of the latencies overlap: which of the two is faster is not certain"""
    options: list[OptionDifference]
    """options whose values differ"""
    kernels: list[KernelDifference]
    """by phase and name, the largest difference first"""
    memory: list[MemoryDifference]
    """by part"""

class MemoryPoint(Record):
    """Memory while one operator runs."""
    phase: str
    """of the pass"""
    segment: str
    """part of the model, e.g. its layers"""
    repetition: int
    """of the segment"""
    node: str
    """the operator that runs"""
    bytes: int
    """the sum of the parts [bytes]"""
    parts: MemoryParts
    """what is in memory"""

class MemoryHolder(Record):
    """Tensors of one name at the peak."""
    name: str
    """of the tensors"""
    part: str
    """what they are for"""
    bytes: int
    """of all together [bytes]"""
    count: int
    """how many"""

class MemoryRepetition(Record):
    """One repetition of a segment, at its highest operator."""
    phase: str
    """of the pass"""
    segment: str
    """part of the model, e.g. its layers"""
    repetition: int
    """of the segment"""
    node: str
    """the operator that runs"""
    bytes: int
    """the sum of the parts [bytes]"""
    parts: MemoryParts
    """what is in memory"""
    bytes_after: int
    """at the last operator of the repetition [bytes]"""

class MemoryTimeline(Record):
    """Memory over one pass or training step."""
    schema_version: int
    """of this schema"""
    model: str
    """name of the model"""
    gpu: str
    """id of the GPU"""
    mode: str
    """of the pass"""
    batch: int
    """sequences"""
    seq: int
    """length of a sequence [tokens]"""
    dtype: str
    """the dtype that was used"""
    peak: MemoryPoint | None
    """the highest point"""
    holders: list[MemoryHolder]
    """tensors in memory at the peak, those of one name together, the largest first"""
    timeline: list[MemoryRepetition]
    """each repetition of each segment, at its highest operator"""
    allocated_bytes: int
    """torch.cuda.max_memory_allocated: blocks in use, with workspaces [bytes]"""
    reserved_low_bytes: int
    """torch.cuda.max_memory_reserved, at least: the segments that hold the peak [bytes]"""
    reserved_high_bytes: int
    """the same at most: what a simulated caching allocator takes over two steps, without ever giving back [bytes]"""
    workspace_bytes: int
    """workspace of cuBLAS [bytes]"""
    framework_bytes: int
    """context and code of the framework [bytes]"""
    device_bytes: int
    """what programs see of the device's memory [bytes]"""
    fits: bool
    """the peak with workspace and framework"""

class PowerPoint(Record):
    """What a GPU draws from a time on."""
    start_s: float
    """until the next point, or the end [s]"""
    power_w: float
    """mean of that time [W]"""
    what: str
    """the GPU computes; empty: it waits"""

class RankPower(Record):
    """Power of one rank's GPU over time."""
    rank: int
    """number of the rank"""
    points: list[PowerPoint]
    """in the order of time"""

class PowerTimeline(Record):
    """Power of GPUs over a pass, a training step, or a minute of a server under load."""
    schema_version: int
    """of this schema"""
    model: str
    """name of the model"""
    gpu: str
    """id of the GPU"""
    work: str
    """what is computed"""
    seconds: float
    """how long [s]"""
    mean_w: float
    """over that time and the ranks [W]"""
    idle_w: float
    """of a GPU that holds its clock and computes nothing [W]"""
    limit_w: float
    """the limit of the board, or the option `power_cap_w` [W]"""
    ranks: list[RankPower]
    """one rank of each kind; of servers the first of the first replica"""

class KernelExplanation(Record):
    """Why a kernel takes its time."""
    name: str
    """operator of 'tilecast ops'"""
    roofline_s: float
    """the shortest time that the data sheet allows [s]"""
    flops_per_s: float
    """work over the forecast [FLOP/s]"""
    bytes_per_s: float
    """memory traffic over the forecast [bytes/s]"""
    clock_hz: float | None
    """clock of the multiprocessors; null: a collective [Hz]"""
    law_s: float | None
    """time by the law: a formula of work, data sheet and software; null, as its terms: no law forecasts this kernel [s]"""
    start_s: float | None
    """part of the law: launches, start and end [s]"""
    memory_s: float | None
    """part of the law: bytes from DRAM and L2; overlaps with compute [s]"""
    compute_s: float | None
    """part of the law: cycles of the multiprocessors [s]"""
    busy_ratio: float | None
    """share of the multiprocessors that has a block, on average over the waves"""
    power_s: float | None
    """part of the law that the power limit of the board adds [s]"""
    learned_factor: float | None
    """forecast over law: what measurements of other kernels taught"""
    nearest_gpu: str | None
    """id of the most similar measured GPU whose rows count; null: none"""
    similarity: float | None
    """of that GPU's data sheet; 1: the same"""
    measured: str | None
    """where rows of the same software and precision are from: device (the nearest GPU), class (others of its architecture and kind of memory), other devices, nothing; null: no law"""
    outside: str | None
    """size that is furthest outside the range of the measured rows; null: none"""

class KernelAnswer(Record):
    """The kernels of one operator."""
    schema_version: int
    """of this schema"""
    gpu: str
    """id of the GPU"""
    clocks: str
    """the option `clocks`: boost, base, sustained or a number of MHz"""
    software: str
    """whose kernels run the operator"""
    reuse: str | None
    """rows of a table that the batch uses once, twice, 4, 8, ... times, as given"""
    kernels: list[Kernel]
    """what it launches"""
    explanations: list[KernelExplanation]
    """why each of the kernels takes its time"""
    roofs: list[Roof]
    """what the data sheet allows, for each dtype that kernels compute in"""
    warnings: list[str]
    """sentences that readers of the numbers should know"""

class Collective(Record):
    """The time of one collective."""
    collective: str
    """what it does"""
    cluster: str
    """id of the cluster"""
    dtype: str
    """of the elements"""
    ranks: int
    """GPUs that take part"""
    ranks_per_node: int
    """of these on each node"""
    nodes: int
    """that take part"""
    bytes: int
    """of the whole buffer [bytes]"""
    latency_s: float
    """the time [s]"""
    low_s: float
    """80 % interval [s]"""
    high_s: float
    """80 % interval [s]"""
    algorithm: str
    """of the library"""
    start_s: float
    """start-up and steps: what more bandwidth does not shorten [s]"""
    transfer_s: float
    """the bytes: latency_s less start_s [s]"""
    bus_bytes_per_s: float
    """as nccl-tests define it: comparable with the rate of the links [bytes/s]"""
    link_bytes: float
    """that one rank sends inside its node [bytes]"""
    network_bytes: float
    """that a node's ranks of the group send to other nodes [bytes]"""
    extrapolated: bool
    """outside the training range"""
    warnings: list[str]
    """sentences that readers of the numbers should know"""
    warning_codes: list[str]
    """code of each warning, in the order of warnings"""

class TrainingWinner(Record):
    """The first candidate."""
    options: str
    """of tilecast forecast, beside the shared ones"""
    latency_low_s: float
    """80 % interval of a step [s]"""
    latency_high_s: float
    """80 % interval [s]"""
    extrapolated: bool
    """part of the time comes from no measurement of the GPU's class or links"""
    mfu_ratio: float
    """MFU, model FLOPs utilization: the model's FLOPs / (latency x peak FLOP/s of the GPUs for the dtype)"""
    utilization_ratio: float
    """HFU, hardware FLOPs utilization: the same with the FLOPs that checkpointing computes again"""

class TrainingCandidate(Record):
    """One parallel configuration. Memory is that of the rank that needs most."""
    rank: int | None
    """null: not among the first"""
    step: int | None
    """of ranked candidates: which of one step is faster is not certain; the simplest comes first"""
    alike: int | None
    """of ranked candidates: others with the same degrees that may be as fast"""
    fits: bool
    """whether it fits"""
    dp: int
    """data-parallel ranks"""
    tp: int
    """tensor-parallel ranks"""
    pp: int
    """pipeline stages"""
    cp: int
    """context-parallel ranks"""
    ep: int
    """expert-parallel ranks"""
    micro_batch_size: int
    """sequences of a micro-batch"""
    microbatches: int
    """of each data-parallel rank"""
    pipeline_schedule: str
    """order of the micro-batches"""
    virtual_stages: int
    """parts of the model on each pipeline stage"""
    num_layers_per_virtual_pipeline_stage: int | None
    """null: not interleaved"""
    zero: str
    """what data-parallel ranks divide"""
    checkpointing: str
    """what the backward pass computes again"""
    sequence_parallel: bool
    """whether tensor-parallel ranks divide the sequence"""
    dtype: str
    """of the step"""
    latency_s: float | None
    """of a step; null: not simulated [s]"""
    bound_s: float
    """a step takes at least so long [s]"""
    peak_bytes: int
    """the largest sum over time, with workspace and framework; the parts need not be at their largest then [bytes]"""
    margin_bytes: int
    """usable memory less peak; below 0 if it does not fit [bytes]"""
    reserve_bytes: int
    """that has to stay free [bytes]"""
    weights_bytes: int
    """parameters and buffers [bytes]"""
    gradients_bytes: int
    """of all parameters, without buckets for their reduction [bytes]"""
    optimizer_bytes: int
    """optimizer states [bytes]"""
    activations_bytes: int
    """the largest sum of tensors that the forward and the backward pass compute, and inputs; over several ranks of all micro-batches in flight; of text generation, of a step [bytes]"""
    compute_s: float | None
    """mean of the stages of a simulated step, as the next two [s]"""
    exposed_communication_s: float | None
    """communication while nothing is computed [s]"""
    bubble_s: float | None
    """waiting for other stages [s]"""
    latency_low_s: float | None
    """80 % interval, as the next; only of ranked candidates [s]"""
    latency_high_s: float | None
    """80 % interval [s]"""
    extrapolated: bool | None
    """of ranked candidates: part of the time comes from no measurement of the GPU's class or links"""
    tokens_per_s: float | None
    """of a simulated step [1/s]"""
    images_per_s: float | None
    """of a simulated step of a model of images [1/s]"""
    power_w: float | None
    """of one GPU; only of ranked candidates, as the next two [W]"""
    energy_j: float | None
    """of a step, of all GPUs' boards [J]"""
    energy_per_token_j: float | None
    """of a token, of all GPUs' boards [J]"""
    cost_of_step: float | None
    """in the unit of the price, of a simulated step; of ranked candidates with the energy, where it has a price"""

class PlanAlternative(Record):
    """The best candidate that has another value of one option than the first."""
    option: str
    """name of the option"""
    value: str
    """its value"""
    candidate: int
    """index of the candidate; if none fits, the one that misses least memory"""

class ImpossibleDegrees(Record):
    """A reason why degrees of a space are impossible."""
    reason: str
    """why"""
    count: int
    """how often it applies"""

class TrainingPlan(Record):
    """The best parallel configurations of a training step."""
    schema_version: int
    """of this schema"""
    kind: str
    """training"""
    model: str
    """name of the model"""
    gpu: str
    """id of the GPU"""
    cluster: str
    """id of the cluster"""
    nodes: int
    """of the cluster"""
    ranks: int
    """GPUs that take part"""
    batch: int
    """sequences of a step, over all ranks"""
    seq: int
    """length of a sequence [tokens]"""
    parameters: int
    """parameters of the model"""
    device_bytes: int
    """what programs see of a GPU's memory [bytes]"""
    objective: str
    """what the best candidate has least of"""
    price_per_gpu_hour: float | None
    """null: not given"""
    gpu_price: GpuPrice | None
    """the row of that price, where prices are by GPU"""
    winner: TrainingWinner | None
    """of the first candidate; null: none fits"""
    launch: list[LaunchLine]
    """commands that start the first candidate"""
    warnings: list[str]
    """sentences that readers of the numbers should know"""
    fitting: int
    """candidates that fit"""
    memory_reserve: float
    """of the peak, that has to stay free"""
    simulated: int
    """candidates that were simulated"""
    ranked: int
    """layouts that are ranked by simulated times"""
    skipped: int
    """candidates that are not listed: with a smaller micro-batch, none of them fits"""
    fastest_s: float | None
    """of the fastest candidate, which need not be the simplest [s]"""
    tie_ratio: float | None
    """a step that is slower than another by less than this share ties with it"""
    nodes_that_fit: int | None
    """the fewest nodes on which a configuration fits; null: one fits, or none was found"""
    candidates: list[TrainingCandidate]
    """those that fit, the best first (one for each layout that is ranked, then others by their times and bounds), then those that do not, the nearest first"""
    alternatives: list[PlanAlternative]
    """the best candidates with another value of an option than the first"""
    impossible: list[ImpossibleDegrees]
    """degrees that the model does not allow"""
    failures: list[ImpossibleDegrees]
    """forecasts of candidates that a defect of Tilecast ended"""
    options: dict[str, int | float | str]
    """options that all candidates share: values by the names of the command-line options (with _ for -), in their units; options without a value are omitted"""

class TrainingPlans(Record):
    """Plans of the same training on different GPUs."""
    schema_version: int
    """of this schema"""
    kind: str
    """training_comparison"""
    plans: list[TrainingPlan]
    """the best of each GPU first"""

class ServingHardware(Record):
    """One kind of GPU."""
    gpu: str
    """id of the GPU"""
    device_bytes: int
    """what programs see of its memory [bytes]"""
    price_per_gpu_hour: float | None
    """null: not given"""
    gpu_price: GpuPrice | None
    """the row of that price, where prices are by GPU"""

class ServingCandidate(Record):
    """A layout under a load of `concurrency` clients for each replica."""
    gpu: str
    """id of the GPU"""
    tp: int
    """tensor-parallel ranks"""
    pp: int
    """pipeline stages"""
    dp: int
    """data-parallel ranks of attention"""
    ep: int
    """expert-parallel ranks"""
    all2all_backend: str
    """how tokens reach the ranks with their experts"""
    prefill_workers: int
    """servers of the same layout that compute prompts only; 0: replicas do so themselves"""
    replicas: int
    """as many as the GPUs hold, GPUs that are left over are idle; with rate or clients: the fewest that keep the limits"""
    gpus: int
    """of all replicas and prefill workers"""
    dtype: str
    """empty: the checkpoint's own"""
    kv_dtype: str
    """empty: that of the model"""
    max_model_len: int | None
    """the longest request, where the server does not start with the model's longest sequence [tokens]"""
    concurrency: int
    """clients of each replica; 0: requests come at the rate"""
    requests: int | None
    """that were simulated, where they are more than forecast's default"""
    fits: bool
    """whether the longest request does"""
    peak_bytes: int
    """of one rank [bytes]"""
    margin_bytes: int
    """below 0: it does not fit [bytes]"""
    simulated: bool
    """false: it does not fit, or less load misses a limit already or writes as much (within 1 %), or it is pruned"""
    pruned: bool
    """its simulation ended as soon as it was sure to miss a limit that less load keeps"""
    keeps_up: bool | None
    """the queue does not grow without bound"""
    meets_limits: bool
    """simulated, and within the limits, if there are any"""
    ties: bool
    """the best load of a layout whose throughput is less than 5 % below the most on the same GPUs: which writes more is not certain"""
    pareto: bool
    """no other is better both for a user and for a GPU, of those that meet the limits if any does"""
    ttft_s: float | None
    """at the percentile, of the steady part, as the next [s]"""
    tpot_s: float | None
    """time per output token [s]"""
    mean_ttft_s: float | None
    """mean time to first token [s]"""
    mean_tpot_s: float | None
    """mean time per output token [s]"""
    tokens_per_s: float | None
    """written by all replicas [1/s]"""
    requests_per_s: float | None
    """of all replicas [1/s]"""
    user_tokens_per_s: float | None
    """1 / mean_tpot_s [1/s]"""
    gpu_tokens_per_s: float | None
    """tokens_per_s over all GPUs, idle ones too [1/s]"""
    price_per_hour: float | None
    """of all GPUs, idle ones too, in the unit of the price"""
    cost_of_million_tokens: float | None
    """in the unit of the price"""
    power_w: float | None
    """of one GPU; as the next, of the best row of each kind of GPU, or with the objective energy of all rows that meet the limits [W]"""
    energy_per_token_j: float | None
    """of an output token, of all GPUs' boards [J]"""
    ttft_low_s: float | None
    """80 % interval, as the next; only of the rows that tables list: the first ten, the front, the alternatives, the best of each kind of GPU [s]"""
    ttft_high_s: float | None
    """80 % interval [s]"""
    tpot_low_s: float | None
    """80 % interval [s]"""
    tpot_high_s: float | None
    """80 % interval [s]"""
    gpu_tokens_low_per_s: float | None
    """80 % interval [1/s]"""
    gpu_tokens_high_per_s: float | None
    """80 % interval [1/s]"""
    extrapolated: bool | None
    """part of the time comes from no measurement of the GPU's class or links"""
    limits_certain: bool | None
    """with limits: the intervals cross none of them, or one is missed by all of its interval"""

class ServingPlan(Record):
    """The best ways to serve a model on a number of GPUs."""
    schema_version: int
    """of this schema"""
    kind: str
    """serving"""
    model: str
    """name of the model"""
    hardware: list[ServingHardware]
    """kinds of GPUs"""
    gpus: int
    """of each kind; with rate or clients: that one server may take"""
    rate: float | None
    """of all replicas together [requests/s]"""
    clients: int | None
    """of all replicas together"""
    prompt: int
    """mean length [tokens]"""
    output: int
    """mean length [tokens]"""
    software: str
    """whose kernels and scheduler"""
    objective: str | None
    """what the best candidate has least of, where it is energy"""
    ttft_s: float | None
    """limit; null: none [s]"""
    tpot_s: float | None
    """limit; null: none [s]"""
    percentile: str
    """of requests that the limits apply to"""
    winner: str | None
    """options of tilecast forecast; null: none meets the limits"""
    launch: list[LaunchLine]
    """commands that start a replica of the first candidate"""
    warnings: list[str]
    """sentences that readers of the numbers should know"""
    meeting: int
    """candidates that meet the limits"""
    layouts: int
    """layouts among them: the first candidates are the best load of each"""
    most: int | None
    """index of the candidate of most throughput; null: the first, or none meets the limits"""
    fewest: int | None
    """with rate or clients: index of the candidate of the fewest GPUs; null: the first"""
    simulated: int
    """to their end"""
    pruned: int
    """simulated until they were sure to miss a limit; with --full-search none"""
    fitting: int
    """candidates that fit"""
    candidates: list[ServingCandidate]
    """those that meet the limits, the best first; those that miss them, the nearest first; the others"""
    front: list[int]
    """indices of the Pareto front of the candidates that meet the limits (of all that were simulated, if none does), by rising tokens/s of a user"""
    alternatives: list[PlanAlternative]
    """the best candidates with another value of an option than the first"""
    impossible: list[ImpossibleDegrees]
    """degrees that the model does not allow"""
    failures: list[ImpossibleDegrees]
    """forecasts of layouts that a defect of Tilecast ended"""
    options: dict[str, int | float | str]
    """options that all candidates share: values by the names of the command-line options (with _ for -), in their units; options without a value are omitted"""

class ShardCost(Record):
    """Seconds of a step that tables cause."""
    forward_s: float
    """of the slowest rank [s]"""
    backward_s: float
    """of the slowest rank, with the sparse optimizer [s]"""
    exchange_s: float
    """all-to-all of sums, and of their gradients [s]"""
    reduce_s: float
    """all-reduces of the gradients of replicated tables [s]"""
    total_s: float
    """the sum: what a placement is judged by [s]"""

class ShardRule(Record):
    """A placement of whole tables by a simple rule, for comparison."""
    rule: str
    """what the rule balances over the ranks"""
    fits: bool
    """whether the tables fit"""
    cost: ShardCost | None
    """null: they do not fit"""

class ShardedTable(Record):
    """Where a table is."""
    name: str
    """of the table"""
    way: str
    """how it is divided"""
    rows: int
    """of the whole table"""
    dim: int
    """of the whole table"""
    reuse: str
    """how its rows repeat: a name of the file's `reuse`, or uniform"""
    bytes: int
    """of one part, with optimizer states [bytes]"""
    forward_s: float
    """of one part [s]"""
    backward_s: float
    """of one part [s]"""
    ranks: list[int]
    """one for each part"""

class Placement(Record):
    """A placement of embedding tables on the ranks of a cluster."""
    schema_version: int
    """of this schema"""
    cluster: str
    """id of the cluster"""
    gpu: str
    """id of the GPU"""
    dtype: str
    """of exchanged sums"""
    nodes: int
    """that take part"""
    ranks: int
    """GPUs that take part"""
    batch: int
    """samples of a step, over all ranks"""
    tables_bytes: int
    """of all tables, once, with optimizer states [bytes]"""
    usable_bytes: int
    """of each GPU's memory [bytes]"""
    cost: ShardCost
    """seconds of a step"""
    bound_s: float
    """no placement takes less [s]"""
    rules: list[ShardRule]
    """placements of whole tables by simple rules"""
    rank_tables: list[RankTables]
    """what each rank holds"""
    tables: list[ShardedTable]
    """where each table is"""
    extrapolated: bool
    """FBGEMM's kernels were not measured"""
    warnings: list[str]
    """sentences that readers of the numbers should know"""

class ParameterSet(Record):
    """One set of tuning parameters of a solver."""
    text: str
    """as MIOpen's databases write it"""
    tokens: dict[str, int]
    """the parameters by name"""
    log_probability: float
    """natural, among the legal sets"""

class Solver(Record):
    """One solver of a convolution."""
    name: str
    """MIOpen's"""
    algorithm: str
    """GEMM, Direct, Winograd, ImplicitGEMM or FFT"""
    latency_s: float
    """time of the convolution [s]"""
    low_s: float
    """80 % interval [s]"""
    high_s: float
    """80 % interval [s]"""
    listed_probability: float
    """that a search lists it among the fastest"""
    ranked_s: float
    """by what solvers are sorted: the time, longer where a search is less likely to list the solver [s]"""
    parameters: list[ParameterSet]
    """legal sets of tuning parameters, the most likely first; empty without a model of them"""

class TuneProblem(Record):
    """What to run for one convolution."""
    problem: str
    """as 'tilecast tune' takes it"""
    name: str | None
    """of the first node of a model that has it; only for models"""
    key: str
    """in MIOpen's databases"""
    gpu: str
    """id of the GPU"""
    solvers: list[Solver]
    """the best first"""
    fallback: Solver | None
    """what MIOpen takes where it has neither database nor search, by an assumed order of solvers; null: nothing"""
    gain_ratio: float
    """time of the fallback over that of the best; 1 without a fallback"""
    gain_low_ratio: float
    """80 % interval"""
    gain_high_ratio: float
    """80 % interval"""
    extrapolated: bool
    """no GPU of the architecture was measured"""

class Tuning(Record):
    """Solvers and parameters without a search."""
    schema_version: int
    """of this schema"""
    problems: list[TuneProblem]
    """the convolutions"""
    warnings: list[str]
    """what no solver takes, and more"""

class ProductKernel(Record):
    """One kernel of rocBLAS (Tensile)."""
    tile_m: int
    """rows of C that a work-group computes"""
    tile_n: int
    """its columns"""
    depth_u: int
    """steps of the reduction in shared memory at once"""
    split: int
    """work-groups that share one reduction"""
    matrix_instruction: str
    """rows, columns, depth and blocks, as 32x32x8x1; none: the vector unit"""
    probability: float
    """that it is the fastest"""

class ParameterValue(Record):
    """A value of one part of a kernel."""
    value: str
    """the value"""
    probability: float
    """that the fastest kernel has it"""

class Product(Record):
    """The kernels of one matrix product."""
    problem: str
    """as 'tilecast tune' takes it"""
    gpu: str
    """id of the GPU"""
    measured_gpu: str
    """an alias of the GPU whose tuned sizes were learned"""
    extrapolated: bool
    """that is another GPU"""
    kernels: list[ProductKernel]
    """the most probable first"""
    parts: dict[str, list[ParameterValue]]
    """probabilities of each part by itself"""

class ProductTuning(Record):
    """Kernels of matrix products without a search."""
    schema_version: int
    """of this schema"""
    products: list[Product]
    """the matrix products"""
    warnings: list[str]
    """sentences that readers of the numbers should know"""

class EvaluationRow(Record):
    """Errors of one GPU, operator and dtype."""
    gpu: str
    """id of the GPU"""
    op: str
    """operator"""
    dtype: str
    """of the operands"""
    software: str
    """software whose kernels were measured"""
    count: int
    """number of measurements"""
    mape_percent: float
    """mean absolute error [%]"""
    median_percent: float
    """median of the absolute errors [%]"""
    p90_percent: float
    """90th percentile of the absolute errors [%]"""
    bias_ratio: float
    """geometric mean of forecast / measured"""
    coverage_percent: float
    """share of measurements inside the 80 % interval [%]"""

class EvaluationModel(Record):
    """The error of one measured model."""
    gpu: str
    """id of the GPU"""
    model: str
    """its name"""
    mode: str
    """inference or training"""
    seq: int
    """length of a sequence [tokens]"""
    batch: int
    """sequences"""
    dtype: str
    """of the operands"""
    option: str
    """option in the name of the measurement's file"""
    measured_s: float
    """measured [s]"""
    forecast_s: float
    """forecast [s]"""
    low_s: float
    """80 % interval [s]"""
    high_s: float
    """80 % interval [s]"""
    error_percent: float
    """absolute error [%]"""

class EvaluationPeak(Record):
    """The error of one measured peak of memory."""
    gpu: str
    """id of the GPU"""
    model: str
    """its name, or that of the run"""
    option: str
    """its group"""
    measured_bytes: int
    """measured, of tensors on the last rank [bytes]"""
    forecast_bytes: int
    """forecast of the same [bytes]"""
    error_percent: float
    """absolute error [%]"""

class EvaluationPoint(Record):
    """One measured kernel or collective beside its forecast."""
    gpu: str
    """id of the GPU"""
    op: str
    """operator"""
    dtype: str
    """of the operands"""
    software: str
    """software whose kernel was measured"""
    sizes: str
    """of the kernel"""
    measured_s: float
    """measured [s]"""
    forecast_s: float
    """forecast [s]"""
    low_s: float
    """80 % interval [s]"""
    high_s: float
    """80 % interval [s]"""
    error_percent: float
    """absolute error [%]"""

class Evaluation(Record):
    """Forecasts compared with measurements."""
    schema_version: int
    """of this schema"""
    rows: list[EvaluationRow]
    """errors of kernels"""
    models: list[EvaluationModel]
    """errors of whole models"""
    peaks: list[EvaluationPeak]
    """errors of peaks of memory in training"""
    points: list[EvaluationPoint]
    """the measured kernels of the largest errors, as many as `points` asks for"""
    points_left_out: int
    """measured kernels that are not among `points`"""
    unmatched: list[str]
    """measurements that could not be evaluated, with the reason"""
    warnings: list[str]
    """sentences that readers of the numbers should know"""

class TuneErrors(Record):
    """Choice and times of solvers against those that MIOpen lists."""
    rows: str
    """all, or held-out layers: those that the weights were not trained on"""
    problems: int
    """convolutions"""
    problems_with_a_choice: int
    """problems that list two solvers or more, at least one of them ranked"""
    slow_down_ratio: float
    """time of the listed solver that is ranked first over that of the fastest, geometric mean"""
    within_5_percent: float
    """share of choices at most 5 % slower than the fastest"""
    times: int
    """rows with a time"""
    mape_percent: float
    """mean absolute error of the times [%]"""
    median_percent: float
    """median of the absolute errors [%]"""
    first_listed_percent: float
    """how often the first of all is listed [%]"""
    unranked_problems: int
    """none of whose solvers the program offers"""

class TuneEvaluation(Record):
    """Errors of one file."""
    file: str
    """its name"""
    gpu: str
    """id of the GPU"""
    extrapolated: bool
    """no GPU of its architecture was trained on"""
    errors: list[TuneErrors]
    """over all rows, and over those held out"""
    unknown_rows: int
    """of solvers that the program does not know"""
    unknown_solvers: list[str]
    """their names"""

class TuneEvaluations(Record):
    """Errors of tuning without a search."""
    schema_version: int
    """of this schema"""
    tuning: list[TuneEvaluation]
    """one entry for each file"""

class AcceleratorEvaluation(Record):
    """Forecast against measured cycles of one file."""
    file: str
    """its name"""
    gpu: str
    """id of the accelerator"""
    count: int
    """rows that were compared"""
    left_out: int
    """rows that were not"""
    mape_percent: float
    """mean absolute error [%]"""
    median_percent: float
    """median of the absolute errors [%]"""
    p90_percent: float
    """90th percentile of the absolute errors [%]"""
    bias_ratio: float
    """geometric mean of forecast / measured"""
    rank_correlation: float | None
    """Spearman's: mean over layers with five mappings or more; where there are none, over all rows; null: there are fewer than two"""
    held_out_mape_percent: float
    """the same with the fitted parameters fitted again without each layer [%]"""
    held_out_median_percent: float
    """the same with the fitted parameters fitted again without each layer [%]"""
    fitted: list[str]
    """parameters that were fitted"""

class AcceleratorEvaluations(Record):
    """Errors of accelerators."""
    schema_version: int
    """of this schema"""
    rows: list[EvaluationRow]
    """errors by accelerator and operator; of cycles, which have no interval"""
    accelerators: list[AcceleratorEvaluation]
    """one entry for each file"""

class SharingErrors(Record):
    """Errors of the relative speeds on one GPU or slice."""
    gpu: str
    """id of the GPU"""
    how: str
    """how jobs share it"""
    slice: str
    """profile of MIG; empty: pairs, or all slices"""
    count: int
    """rows that were compared"""
    mape_percent: float
    """mean absolute error [%]"""
    median_percent: float
    """median of the absolute errors [%]"""
    p90_percent: float
    """90th percentile of the absolute errors [%]"""
    bias_ratio: float
    """geometric mean of forecast / measured"""
    coverage_percent: float
    """share of rows inside the 80 % interval [%]"""
    half_mape_percent: float | None
    """mean absolute error if each job of a pair got half [%]"""
    alone_mape_percent: float
    """mean absolute error if no job were slowed [%]"""
    median_mape_percent: float | None
    """mean absolute error of the median over the rows of each slice [%]"""
    left_out_pair_mape_percent: float | None
    """mean absolute error of each pair with the other pairs fitted [%]"""
    left_out_job_mape_percent: float | None
    """mean absolute error of the pairs of each job with three of its pairs and all of other jobs fitted [%]"""
    left_out_pair_coverage_percent: float | None
    """share of rows inside the 80 % interval that the other pairs give [%]"""
    did_not_run: int | None
    """rows of pairs that did not run"""
    called: int | None
    """of these, rows whose memory is forecast to be tight or not to fit"""
    false_alarms: int | None
    """the same of rows of pairs that ran"""

class SharingPoint(Record):
    """A measured and a forecast relative speed."""
    gpu: str
    """id of the GPU"""
    job: str
    """whose speed it is"""
    partner: str
    """the job beside it; empty: none, on a slice"""
    slice: str
    """profile of MIG"""
    measured: float
    """relative speed"""
    forecast: float
    """relative speed"""
    forecast_low: float
    """80 % interval"""
    forecast_high: float
    """80 % interval"""
    left_out_pair: float | None
    """relative speed with the other pairs fitted"""

class SharingEvaluation(Record):
    """Forecast against measured speeds of jobs that share a GPU."""
    schema_version: int
    """of this schema"""
    file: str
    """its name"""
    series: str
    """whose rows were compared; empty: the file has one"""
    errors: list[SharingErrors]
    """by GPU; of slices also by slice"""
    points: list[SharingPoint]
    """all rows that were compared"""
    unmatched: list[str]
    """rows that could not be compared, with the reason"""

class ServerErrors(Record):
    """Errors of one figure of measured servers."""
    metric: str
    """the figure: see the fields of points"""
    software: str
    """of the servers; empty: all"""
    model: str
    """as the table names it; empty: all"""
    gpu: str
    """id of the GPU; empty: all"""
    dtype: str
    """of the weights; empty: all"""
    count: int
    """rows that were compared"""
    mape_percent: float
    """mean absolute error [%]"""
    median_percent: float
    """median of the absolute errors [%]"""
    p90_percent: float
    """90th percentile of the absolute errors [%]"""
    bias_ratio: float
    """geometric mean of forecast / measured"""
    coverage_percent: float
    """share of rows inside the 80 % interval [%]"""
    kendall_tau: float | None
    """of the ranks of the rows by forecast and by measured figure; null: all are equal"""

class ServerPoint(Record):
    """A measured server beside its forecast."""
    line: int
    """of the file"""
    software: str
    """of the server"""
    version: str | None
    """of the software"""
    model: str
    """as the table names it"""
    gpu: str
    """id of the GPU"""
    dtype: str
    """of the weights, as the table names it"""
    gpus: int
    """of the server"""
    tp: int
    """tensor-parallel ranks"""
    dp: int
    """data-parallel ranks of attention"""
    ep: int
    """expert-parallel ranks"""
    clients: int
    """requests at once"""
    prompt: str
    """length of a prompt, or its range [tokens]"""
    output: str
    """length of an output, or its range [tokens]"""
    statistic: str | None
    """of the times over requests, and of times between tokens over all tokens; empty: means"""
    tpot_measured_s: float | None
    """time per output token, measured [s]"""
    tpot_s: float | None
    """time per output token, forecast [s]"""
    tpot_low_s: float | None
    """80 % interval [s]"""
    tpot_high_s: float | None
    """80 % interval [s]"""
    itl_measured_s: float | None
    """time between two tokens of a stream, measured [s]"""
    itl_s: float | None
    """time between two tokens of a stream, forecast [s]"""
    itl_low_s: float | None
    """80 % interval [s]"""
    itl_high_s: float | None
    """80 % interval [s]"""
    ttft_measured_s: float | None
    """time to first token, measured [s]"""
    ttft_s: float | None
    """time to first token, forecast [s]"""
    ttft_low_s: float | None
    """80 % interval [s]"""
    ttft_high_s: float | None
    """80 % interval [s]"""
    ttft_use: str | None
    """why the time to first token does not count; yes: it does"""
    tokens_per_s_per_gpu_measured: float | None
    """output tokens, measured [1/s]"""
    tokens_per_s_per_gpu: float | None
    """output tokens, forecast [1/s]"""
    tokens_per_s_per_gpu_low: float | None
    """80 % interval [1/s]"""
    tokens_per_s_per_gpu_high: float | None
    """80 % interval [1/s]"""
    power_measured_w: float | None
    """of one GPU, measured [W]"""
    power_w: float | None
    """of one GPU, forecast [W]"""
    power_low_w: float | None
    """80 % interval [W]"""
    power_high_w: float | None
    """80 % interval [W]"""
    energy_per_token_measured_j: float | None
    """of all GPUs for an output token, measured [J]"""
    energy_per_token_j: float | None
    """of all GPUs for an output token, forecast [J]"""
    energy_per_token_low_j: float | None
    """80 % interval [J]"""
    energy_per_token_high_j: float | None
    """80 % interval [J]"""
    energy_per_token_at_measured_rate_j: float | None
    """of all GPUs: the forecast watts over the measured tokens a second [J]"""
    options: str
    """further ones of the forecast: option=value, separated by spaces"""

class ServerEvaluation(Record):
    """Forecasts against measured servers under load."""
    schema_version: int
    """of this schema"""
    file: str
    """its name"""
    errors: list[ServerErrors]
    """in all, by software, by GPU, and by software, model, GPU and dtype"""
    points: list[ServerPoint]
    """all rows that were compared"""
    unmatched: list[str]
    """rows that could not be compared, with the reason"""

class TrainError(Record):
    """Errors of one GPU, operator and dtype."""
    gpu: str
    """id of the GPU"""
    op: str
    """operator"""
    dtype: str
    """of the operands, or the quantization scheme"""
    software: str
    """software whose kernels were measured"""
    count: int
    """number of rows"""
    mape_percent: float
    """mean absolute error [%]"""
    median_percent: float
    """median of the absolute errors [%]"""
    roofline_mape_percent: float
    """mean absolute error of the roofline, on the same rows [%]"""

class Training(Record):
    """The errors of new weights."""
    schema_version: int
    """of this schema"""
    seen: list[TrainError]
    """of rows that constants of laws were fitted to, by the laws alone"""
    held_out: list[TrainError]
    """of a tenth of the rows, never trained on"""
    left_out: list[TrainError]
    """of each GPU by models that never saw it"""
    left_out_architecture: list[TrainError]
    """of each GPU by models that saw no GPU of its architecture"""
    warnings: list[str]
    """sentences that readers of the numbers should know"""

class CollectiveError(Record):
    """Errors of the collectives of one GPU."""
    split: str
    """fitted, held-out sizes, held-out ranks (or nodes), and from 1 MB left-out GPU and left-out links: all GPUs with links of a generation"""
    gpu: str
    """id of the GPU"""
    collective: str | None
    """what it does; null: all of NCCL's"""
    count: int
    """number of rows"""
    mape_percent: float
    """mean absolute error [%]"""
    median_percent: float
    """median of the absolute errors [%]"""
    p90_percent: float
    """90th percentile of the absolute errors [%]"""

class CollectiveTraining(Record):
    """The errors of fitted curves of collectives."""
    schema_version: int
    """of this schema"""
    errors: list[CollectiveError]
    """by split, GPU and collective"""
    warnings: list[str]
    """sentences that readers of the numbers should know"""

class CalibrationError(Record):
    """Errors of one kind of kernels, means of its rows."""
    kind: str
    """matmul, softmax, ..."""
    count: int
    """number of rows; 0: too few to calibrate the kind"""
    before_percent: float
    """without the calibration [%]"""
    after_percent: float
    """of each row by a calibration that did not see it [%]"""

class Calibration(Record):
    """Errors of forecasts before and after a calibration."""
    schema_version: int
    """of this schema"""
    gpu: str
    """id of the GPU"""
    kinds: list[CalibrationError]
    """all kinds of kernels"""
    warnings: list[str]
    """sentences that readers of the numbers should know"""

class PairEffectRow(Record):
    """What measured pairs say of a job beside the law."""
    job: str
    """its name"""
    pairs: int
    """that it is in"""
    slowed_ratio: float
    """by which it is slowed more than the law says: of 1/r - 1"""
    slows_ratio: float
    """by which it slows others more than the law says"""

class PairCalibration(Record):
    """What measured pairs say beside the law of sharing."""
    schema_version: int
    """of this schema"""
    gpu: str
    """id of the GPU"""
    how: str
    """how jobs share it"""
    pairs: int
    """that were fitted"""
    before_percent: float
    """mean absolute error of relative speeds by the law alone [%]"""
    after_percent: float | None
    """of each pair with the others fitted; null: there is one pair only [%]"""
    jobs: list[PairEffectRow]
    """those that a pair tells something about"""

class SweepColumn(Record):
    """A column of a sweep's results."""
    name: str
    """an option, a number of the device, or a result"""
    unit: str
    """of its values; empty: none"""
    values: list[str]
    """of the points, as text; empty: there is none"""

class Sweep(Record):
    """Forecasts of the points of a sweep."""
    schema_version: int
    """of this schema"""
    kind: str
    """sweep"""
    output: str
    """the file with a row for each point"""
    combinations: int
    """how many points it has"""
    failed: int
    """without a forecast: see `error` in the file"""
    rejected: int
    """points that a condition of `where` refuses: they have no row"""
    pareto: list[str]
    """what the front is about, with min: or max: before each field"""
    front: list[int]
    """`index` of the points that fit and that no other one beats in the fields of `pareto`; without such fields of the accelerators that no other one of the same model and options beats in cycles, multipliers and bytes on the chip"""
    columns: list[SweepColumn] | None
    """of pages: the points of the front and others, as many as a page shows"""
    warnings: list[str]
    """sentences that readers of the numbers should know"""

class JobAlone(Record):
    """What a job takes alone on the GPU."""
    step_s: float
    """time of a step: a pass, a batch of generated texts, or a server's time between two answered requests [s]"""
    step_low_s: float
    """80 % interval [s]"""
    step_high_s: float
    """80 % interval [s]"""
    measured: bool
    """the time of a step is from steps_per_s"""
    gpu_s: float
    """kernels of a step of one process; what a measured step leaves unexplained, if the input does not bind [s]"""
    gpu_low_s: float
    """80 % interval [s]"""
    gpu_high_s: float
    """80 % interval [s]"""
    kernels_s: float
    """the kernels of a step as forecast [s]"""
    held_s: float
    """time for which a step holds the GPU: with time slices also gaps between launches, which are too short to pass it on [s]"""
    gpu_share: float
    """share of the time in which the job wants the GPU"""
    turn_s: float
    """how long it keeps the GPU while another job waits [s]"""
    switch_s: float
    """time after a turn in which nobody has the GPU, where another job waits [s]"""
    steps_ahead: float
    """steps that its host or loader may be ahead of the GPU"""
    processes: int
    """of the job on this GPU"""
    open: bool
    """a server whose requests arrive at a rate, whatever its speed"""
    sm_share: float
    """SMs that its kernels fill while they run"""
    dram_share: float
    """share of the memory's bandwidth, mean over the step"""
    launches: float
    """kernels of a step"""
    memory_bytes: int
    """peak of all its processes, with their contexts [bytes]"""

class SharedJob(Record):
    """A job beside the others on one GPU."""
    name: str
    """of the job"""
    model: str
    """name of the model"""
    mode: str
    """what it does: inference, training, generation or server"""
    alone: JobAlone
    """what it takes alone"""
    relative_speed: float
    """speed over that alone; of a server with a rate: of its steps"""
    relative_speed_low: float
    """80 % interval"""
    relative_speed_high: float
    """80 % interval"""
    steps_per_s: float
    """steps of each process; of a server: answered requests [1/s]"""
    steps_per_s_low: float
    """80 % interval [1/s]"""
    steps_per_s_high: float
    """80 % interval [1/s]"""
    slice: str
    """profile of MIG; empty: none"""
    memory_bytes: int
    """peak of all its processes; with slices on its slice [bytes]"""
    keeps_up: bool
    """a server's queue does not grow without bound"""

class ShareForecast(Record):
    """Jobs that share a GPU."""
    schema_version: int
    """of this schema"""
    gpu: str
    """id of the GPU"""
    gpu_name: str
    """the product name"""
    how: str
    """how they share it"""
    jobs: list[SharedJob]
    """in the order of the question"""
    sum_of_relative_speeds: float
    """above 1: more work is done than by one job after the other"""
    sum_of_relative_speeds_low: float
    """80 % interval"""
    sum_of_relative_speeds_high: float
    """80 % interval"""
    gpu_demand: float
    """sum of the shares of time in which the jobs want the GPU"""
    sm_demand: float
    """the same, with the SMs that their kernels fill in that time"""
    dram_demand: float
    """sum of the shares of the memory's bandwidth that they take alone"""
    memory_bytes: int
    """of all jobs; with slices: of the job that fills its slice most [bytes]"""
    usable_bytes: int
    """memory that programs see; with slices: of that slice [bytes]"""
    fits: bool
    """whether the memory suffices"""
    memory_is_tight: bool
    """it fits, but takes more than the part above which measured pairs did not run"""
    assumptions: list[str]
    """what matters to the numbers, given or by default"""
    warnings: list[str]
    """what is not certain, and what to do"""

class TracedIdle(Record):
    """Time in which the GPU ran nothing."""
    why: str
    """the host launched late; it launched late as it waited for the GPU before; the gap between kernels that were launched in time; the trace does not tell"""
    seconds: float
    """of all gaps [s]"""
    share: float
    """of the trace's span"""
    gaps: int
    """their number"""

class TracedStep(Record):
    """A step that the profiler marked."""
    name: str
    """its mark"""
    span_s: float
    """of the host [s]"""
    busy_s: float
    """in which the GPU ran work that the step launched [s]"""

class TracedOperator(Record):
    """Kernels of an operator with the same arguments."""
    name: str
    """the operator of PyTorch; of kernels without one, the kernel"""
    sizes: str
    """of its tensors"""
    dtype: str
    """of the first tensor; empty: the trace does not state it"""
    kernel: str
    """the kernel that takes most of its time"""
    kind: str
    """how it is known: forecast by a model, by the traffic of its tensors, measured only, a copy or fill, a collective"""
    calls: float
    """of the operator"""
    kernels: int
    """that they launched"""
    measured_s: float
    """kernels of one call [s]"""
    total_s: float
    """of all calls [s]"""
    share: float
    """of the time of all kernels"""
    forecast: Interval | None
    """what a call should take on this GPU [s]"""
    ratio: float
    """measured over forecast; 0: there is no forecast"""
    flops: int
    """of one call; 0: not known"""
    bytes: int
    """of one call; 0: not known [bytes]"""
    limit: str
    """what bounds the forecast"""
    predictor: str
    """the model that it comes from"""
    extrapolated: bool
    """outside of what the model was trained on"""
    slow: bool
    """measured above the interval of the forecast"""
    reason: str
    """why, as far as the trace tells; empty: it is not slow"""
    gain_s: float
    """what all calls would save at the forecast time [s]"""
    carried: Interval | None
    """what a call takes on the other GPU [s]"""

class TracedMemoryUse(Record):
    """Memory by the trace's events, beside what Tilecast says of the same operators."""
    of_host: bool
    """of the host: no GPU's was recorded"""
    peak_bytes: int
    """most that tensors had [bytes]"""
    reserved_bytes: int
    """most that PyTorch's allocator held; 0: of the host [bytes]"""
    held_bytes: int
    """in use when the trace begins, as parameters are [bytes]"""
    results_bytes: int
    """taken in the trace and in use at the peak [bytes]"""
    workspace_bytes: int
    """most that one operator took and gave back [bytes]"""
    model_reserved_bytes: int
    """what Tilecast's model of PyTorch's allocator holds for the same requests; 0: of the host [bytes]"""
    model_weights_bytes: int
    """weights of the operators of a step; 0: the trace does not tell them from other tensors [bytes]"""
    known_results_bytes: int
    """part of the results whose operators are known [bytes]"""
    model_results_bytes: int
    """the same part by the sizes of these operators' results [bytes]"""

class CarriedTrace(Record):
    """The trace on another GPU."""
    gpu: str
    """id of the GPU"""
    gpu_name: str
    """the product name"""
    host: str
    """what was assumed of the host"""
    kernels_s: float
    """sum of the kernels, copies and collectives [s]"""
    kernels_low_s: float
    """80 % interval [s]"""
    kernels_high_s: float
    """80 % interval [s]"""
    span_s: float
    """from the first launch to the end of the last kernel [s]"""
    span_low_s: float
    """80 % interval [s]"""
    span_high_s: float
    """80 % interval [s]"""
    unknown_share: float
    """share of the measured time that was carried by the ratio of bandwidths alone"""
    cluster: str
    """of the collectives; empty: they take their measured time"""
    traced_batch: int
    """leading size that the activations of the trace have in common; 0: the batch is not changed"""
    batch: int
    """the same there"""
    traced_dtype: str
    """dtype in which the trace's products take most of their time; empty: it is not changed"""
    dtype: str
    """the same there"""
    kept_share: float
    """share of the measured time of operators that do not say how another batch or dtype changes them: they are carried as they are"""

class TraceReport(Record):
    """What a trace of PyTorch's profiler shows."""
    schema_version: int
    """of this schema"""
    file: str
    """the trace"""
    gpu: str
    """id of the GPU that it is compared with; empty: none is known"""
    gpu_name: str
    """its product name"""
    traced_gpu: str
    """the GPU as the trace names it"""
    span_s: float
    """from the first launch to the end of the last kernel [s]"""
    kernels_s: float
    """sum of all kernels, copies and fills [s]"""
    busy_s: float
    """in which the GPU ran any of them [s]"""
    idle_s: float
    """the rest of the span [s]"""
    idle_share: float
    """of the span"""
    exposed_communication_s: float
    """in which it ran collectives and nothing else [s]"""
    idle: list[TracedIdle]
    """why it was idle, the largest part first"""
    steps: list[TracedStep]
    """that the profiler marked"""
    step_s: float
    """median of their spans; 0: none was marked [s]"""
    step_spread: float
    """longest over shortest step, less 1"""
    kernels: int
    """number of kernels, copies and fills"""
    streams: int
    """on which they ran"""
    graph_kernels: int
    """that a CUDA graph launched"""
    operators: list[TracedOperator]
    """the one that takes longest first"""
    should_take: Interval | None
    """sum of the operators' forecasts on this GPU, where nothing was measured [s]"""
    gain_s: float
    """what the slow ones would save at their forecast times [s]"""
    forecast_share: float
    """share of the kernels' time that has a forecast"""
    unknown_share: float
    """share that is measured only, without copies and collectives"""
    memory_peak_bytes: int
    """most that tensors had of one GPU's memory; 0: the trace does not state it [bytes]"""
    memory_reserved_bytes: int
    """most that PyTorch's allocator held of it [bytes]"""
    memory: TracedMemoryUse | None
    """by its events (profile_memory=True), beside Tilecast's models"""
    carried: CarriedTrace | None
    """the trace on another GPU, or with another batch or dtype"""
    assumptions: list[str]
    """what matters to the numbers"""
    warnings: list[str]
    """what is not certain, and what to do"""

class AllocatedPlace(Record):
    """A place that a job has for a share of the time."""
    job: str
    """its name"""
    gpu: str
    """kind of the pool"""
    gpus: int
    """how many it takes"""
    dtype: str
    """that it uses; empty: as the model"""
    beside: str
    """name of the job that shares the GPU; empty: none"""
    share: float
    """of the time from begin_s to end_s"""
    steps_per_s: float
    """while it runs there [1/s]"""
    begin_s: float
    """from now [s]"""
    end_s: float | None
    """null: as long as the job runs [s]"""

class PlaceOption(Record):
    """One place where a job can run, and what it would give there alone."""
    gpu: str
    """kind of the pool"""
    gpus: int
    """how many it takes"""
    dtype: str
    """that it uses; empty: as the model"""
    steps_per_s: float | None
    """speed alone; null: it cannot run there [1/s]"""
    steps_per_s_low: float | None
    """80 % interval [1/s]"""
    steps_per_s_high: float | None
    """80 % interval [1/s]"""
    seconds: float | None
    """time of all its steps there; null: it has no number of steps [s]"""
    cost: float | None
    """of all its steps there, in the unit of the prices"""
    power_w: float | None
    """of all its GPUs' boards there; null: it is not forecast [W]"""
    energy_j: float | None
    """of all its steps there; null: not forecast, or no number of steps [J]"""
    memory_bytes: int
    """peak on each GPU [bytes]"""
    fits: bool
    """whether the memory suffices"""
    error: str | None
    """why there is no forecast"""

class AllocatedJob(Record):
    """A job, its places, and what others would give."""
    name: str
    """of the job"""
    model: str
    """name of the model"""
    weight: float
    """in the objective"""
    places: list[AllocatedPlace]
    """where it runs; empty: nowhere"""
    time_share: float
    """share of the time until its end in which it runs"""
    steps_per_s: float
    """mean until its end [1/s]"""
    relative_speed: float
    """that over the speed at its fastest place, alone"""
    finish_s: float | None
    """when its steps are done, if it keeps its places; null: never [s]"""
    cost: float | None
    """until then, in the unit of the prices"""
    deadline_s: float | None
    """from now; null: none [s]"""
    meets_deadline: bool | None
    """null: it has none"""
    options: list[PlaceOption]
    """each place where it could run, alone"""
    note: str
    """why it runs nowhere or is late, and what to do; empty: nothing is wrong"""

class PoolUse(Record):
    """GPUs of one kind, and how many are in use."""
    gpu: str
    """as the pool names it"""
    gpu_name: str
    """the product name"""
    gpus: int
    """of the pool"""
    price_per_gpu_hour: float | None
    """null: not given"""
    gpu_price: GpuPrice | None
    """the row of that price, where prices are by GPU"""
    used_gpus: float
    """mean number in use until the last job ends"""
    utilization: float
    """of them in use"""

class AllocationForecast(Record):
    """Which job goes where."""
    schema_version: int
    """of this schema"""
    objective: str
    """what it is best for"""
    value: float | None
    """of the objective: throughput a sum of relative speeds, makespan seconds, fairness and finish-time ratios to an equal share, cost in the unit of the prices, deadline a sum of weights, energy joules; null: no job can run"""
    blind_value: float | None
    """the value of the best allocation that does not tell kinds of GPU apart: it divides each job's time among them as the pool is divided; null: with whole"""
    whole: bool
    """each job has one place, not in turns with others"""
    proven: bool
    """the solver has proven that no allocation is better by more than 0.5 %"""
    jobs: list[AllocatedJob]
    """in the order of the question"""
    pool: list[PoolUse]
    """the kinds of GPU"""
    cost: float | None
    """of all steps, in the unit of the prices; null: no prices, or jobs without end"""
    makespan_s: float | None
    """when the last job ends; null: one goes on without end [s]"""
    assumptions: list[str]
    """what matters to the numbers, given or by default"""
    warnings: list[str]
    """what is not certain, and what to do"""

class KindUse(Record):
    """Use of one kind of GPU."""
    gpu: str
    """as the pool names it"""
    utilization: float
    """share of its GPUs in use, until the last job ends"""

class PolicyOutcome(Record):
    """What a policy makes of the arrivals."""
    policy: str
    """fifo, blind or the objective"""
    mean_s: float
    """time of a job from its arrival to its end, mean [s]"""
    median_s: float
    """likewise [s]"""
    p95_s: float
    """95th percentile [s]"""
    makespan_s: float
    """from the first arrival to the end of the last job [s]"""
    utilization: float
    """share of all GPUs in use until then"""
    cost: float | None
    """of the GPU time used, in the unit of the prices"""
    met_deadlines: int
    """jobs that end by their deadline"""
    kinds: list[KindUse]
    """by kind of GPU"""

class ClusterSimulation(Record):
    """Jobs that arrive at a pool, under several policies."""
    schema_version: int
    """of this schema"""
    objective: str
    """of the last policy"""
    arrivals: int
    """jobs that arrive and can run"""
    deadlines: int
    """jobs with a deadline"""
    policies: list[PolicyOutcome]
    """first come, first served; the objective without telling kinds apart; the objective"""
    assumptions: list[str]
    """what matters to the numbers, given or by default"""
    warnings: list[str]
    """what is not certain, and what to do"""

class GpuEntry(Record):
    """A bundled device, with the numbers of its data sheet."""
    id: str
    """name for --gpu"""
    name: str
    """the product name"""
    vendor: str
    """who makes it"""
    aliases: list[str]
    """other names"""
    memory_bytes: int
    """size of the memory [bytes]"""
    memory_bytes_per_s: float
    """bandwidth of the memory [bytes/s]"""
    sm_count: int
    """streaming multiprocessors; compute units on AMD"""
    boost_clock_hz: float
    """the highest clock [Hz]"""
    l2_bytes: int
    """second-level cache [bytes]"""
    power_w: float
    """power limit of the board [W]"""
    architecture: str
    """the word of device files"""
    memory_type: str
    """the word of device files"""
    vector_flops_per_s: dict[str, float]
    """peak rates of the vector lanes by dtype [FLOP/s]"""
    matrix_flops_per_s: dict[str, float]
    """peak rates of the matrix units by dtype, without sparsity [FLOP/s]"""
    slices: list[str]
    """profiles of MIG, for --gpu as in A100-40GB:1g.5gb"""

class ClusterLink(Record):
    """One level of links inside a node."""
    kind: str
    """nvlink, pcie, …"""
    fabric: str
    """how they join the GPUs"""
    gpus: int
    """that the level joins"""
    bytes_per_s: float
    """of one GPU, in one direction [bytes/s]"""
    shared_bytes_per_s: float | None
    """of all transfers of a bus together [bytes/s]"""
    latency_s: float
    """one step of a collective, smallest message [s]"""
    reduces: bool
    """the switch sums"""

class ClusterNetwork(Record):
    """The network between nodes."""
    kind: str
    """infiniband, …"""
    nics_per_node: int
    """network cards of a node"""
    bytes_per_s: float
    """of one NIC, in one direction [bytes/s]"""
    latency_s: float
    """one step of a collective, smallest message [s]"""
    oversubscription: float
    """rate of the NICs over what the network carries"""

class ClusterEntry(Record):
    """A bundled cluster."""
    id: str
    """name for --cluster"""
    name: str
    """the product name"""
    aliases: list[str]
    """other names"""
    gpu: str
    """id of the GPU"""
    gpus_per_node: int
    """GPUs of a node"""
    nodes: int
    """default"""
    links: list[ClusterLink]
    """inside a node, innermost first"""
    network: ClusterNetwork | None
    """between nodes"""

class ModelEntry(Record):
    """A bundled model."""
    name: str
    """name for MODEL"""
    family: str
    """model_type or class in the config"""
    parameters: int
    """parameters of the model"""
    positions: int | None
    """the longest sequence; null: no limit [tokens]"""
    note: str | None
    """says so if the name is misleading; null: it is not"""

class SizeEntry(Record):
    """A size or setting of an operator's kernel."""
    name: str
    """name of the size"""
    description: str
    """what it is"""
    other_names: list[str]
    """other accepted names"""
    default: str
    """as text; empty: required"""
    choices: list[str]
    """the accepted words; empty: a whole number from min to max"""
    min: int
    """the least value"""
    max: int
    """the largest value"""
    is_switch: bool
    """off by default; 1 turns it on"""
    is_list: bool
    """whole numbers with colons between them, as a text: 4:2:1"""

class OpEntry(Record):
    """An operator."""
    name: str
    """name for 'tilecast kernel'"""
    pytorch: str | None
    """ATen operator; null: none"""
    onnx: str | None
    """operator of ONNX; null: none"""
    description: str
    """what it computes"""
    sizes: list[SizeEntry]
    """sizes and settings of its kernel; empty: it launches none"""

class InstalledWeights(Record):
    """A file of embedded weights."""
    name: str
    """its name"""
    bytes: int
    """its size [bytes]"""
    checksum: str
    """of its content, which was verified"""
    trained_on: str
    """hash of the measurements; empty: not stated"""

class InstalledGpu(Record):
    """A GPU of this machine, beside its device file."""
    name: str
    """as its driver states it"""
    device: str
    """id of its device file; empty: there is none"""
    driver: str
    """version of the driver"""
    clock_hz: float | None
    """clock now; null: not stated [Hz]"""
    max_clock_hz: float | None
    """the highest clock; null: not stated [Hz]"""
    power_limit_w: float | None
    """power limit in force; null: not stated [W]"""
    memory_bytes: int | None
    """size of the memory; null: not stated [bytes]"""
    differences: list[str]
    """what differs from the device file, and what to do"""

class InstalledPart(Record):
    """A part that some commands need."""
    name: str
    """its name"""
    found: bool
    """whether it is here"""
    use: str
    """what needs it, and how to install it"""

class Installation(Record):
    """What is installed here."""
    schema_version: int
    """of this schema"""
    version: str
    """of Tilecast"""
    weights: list[InstalledWeights]
    """embedded weights"""
    gpus: list[InstalledGpu]
    """of this machine"""
    hub_cache: str
    """folder of Hugging Face's local cache"""
    hub_models: int
    """models in it that have a config.json"""
    parts: list[InstalledPart]
    """optional parts"""

class ForecastKeywords(TypedDict, total=False):
    predictor: Literal["learned", "roofline"] | None
    clocks: float | str | None
    host: Literal["fast", "typical", "slow"] | None
    images: int | None
    image_size: int | None
    power_cap_w: float | str | None
    price_per_gpu_hour: float | str | Mapping[str, float] | None
    price_per_kwh: float | None
    carbon_g_per_kwh: float | None
    mode: Literal["inference", "training"] | None
    batch: int | None
    seq: int | None
    decoder_seq: int | None
    dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8", "awq", "gptq", "int4", "w4a16", "nvfp4", "mxfp4"] | None
    attention: Literal["eager", "flash"] | None
    fusion: Literal["none", "pointwise", "inductor"] | None
    memory_format: Literal["channels-first", "channels-last"] | None
    optimizer: Literal["none", "sgd", "adam", "adamw", "muon", "adafactor", "adam8bit", "lion"] | None
    optimizer_impl: Literal["foreach", "fused", "for-loop"] | None
    optimizer_offload: bool | Literal["on", "off"] | None
    host_memory_gb_s: float | None
    zero_grad: Literal["set-to-none", "zeros"] | None
    loss: Literal["none", "memory", "full"] | None
    cross_entropy: Literal["log-softmax", "in-place", "compiled", "chunked"] | None
    teacher: str | None
    fp8_recipe: Literal["delayed", "tensorwise", "blockwise", "mxfp8"] | None
    num_layers_at_start_in_bf16: int | None
    num_layers_at_end_in_bf16: int | None
    parameter_transpose_cache: bool | Literal["on", "off"] | None
    packed_sequence_length: int | None
    checkpointing: Literal["none", "selective", "full"] | None
    recompute_modules: str | Sequence[str] | None
    lora_rank: int | None
    lora_targets: str | Sequence[str] | None
    tokens: int | None
    lora_dtype: Literal["as-model", "fp32"] | None
    dim: str | Mapping[str, float] | None
    skip_unsupported: bool | None
    software: Literal["pytorch", "vllm", "sglang", "trtllm", "megatron"] | None
    software_version: str | None
    host_launch_us: float | None
    steps: int | None
    guidance: float | None
    height: int | None
    width: int | None
    frames: int | None
    fps: float | None
    ulysses_degree: int | None
    ring_degree: int | None
    cfg_degree: int | None
    cluster: str | None
    nodes: int | None
    tp: int | None
    pp: int | None
    dp: int | None
    cp: int | None
    cp_comm_type: Literal["allgather", "p2p", "a2a"] | None
    ep: int | None
    skew: int | None
    microbatches: int | None
    micro_batch_size: int | None
    pipeline_schedule: Literal["gpipe", "1f1b", "interleaved", "zero-bubble", "zb-v"] | None
    num_layers_per_virtual_pipeline_stage: int | None
    pipeline_layers: str | None
    sequence_parallel: bool | Literal["on", "off"] | None
    tp_comm_overlap: bool | Literal["on", "off"] | None
    overlap_moe_expert_parallel_comm: bool | Literal["on", "off"] | None
    moe_token_dispatcher_type: Literal["alltoall", "flex"] | None
    expert_tensor_parallel_size: int | None
    make_vocab_size_divisible_by: int | None
    zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None
    bucket_cap_mb: float | None
    overlap_grad_reduce: bool | Literal["on", "off"] | None
    main_params_dtype: Literal["as-model", "fp32"] | None
    slow_ranks: str | None
    output: int | str | None
    kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None
    schedule: Literal["static", "continuous"] | None
    rate: float | None
    concurrency: int | None
    requests: int | None
    session_turns: int | None
    session_turn_delay_s: float | None
    warmup_request_count: int | None
    prefix_len: int | None
    num_prefixes: int | None
    hash_block_size: int | None
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    gpu_memory_utilization: float | None
    max_model_len: int | None
    prefix_hit_rate: float | None
    enable_prefix_caching: bool | Literal["on", "off"] | None
    kv_offloading_size: float | None
    server_overhead_s: float | None
    request_turn_us: float | None
    ttft_s: float | None
    tpot_s: float | None
    cuda_graphs: bool | Literal["on", "off"] | None
    count_cuda_graphs: bool | Literal["on", "off"] | None
    step_overhead_us: float | None
    sequence_overhead_us: float | None
    all2all_backend: Literal["allgather_reducescatter", "deepep"] | None
    replicas: int | None
    router: Literal["round-robin", "least-loaded", "session"] | None
    prefill_workers: int | None
    prefill_tp: int | None
    prefill_pp: int | None
    prefill_dp: int | None
    prefill_ep: int | None
    kv_transfer: Literal["after-prefill", "by-layer"] | None
    encode_workers: int | None
    encode_tp: int | None
    speculative_tokens: int | None
    speculative_method: Literal["draft_model", "mtp", "ngram", "eagle", "eagle3"] | None
    acceptance_rate: float | None
    draft_model: str | None
    cudagraph_mode: Literal["full_decode_only", "full_and_piecewise"] | None
    max_cudagraph_capture_size: int | None
    moe_backend: Literal["auto", "marlin"] | None
    async_scheduling: bool | Literal["on", "off"] | None
    scheduler_recv_interval: int | None
    num_continuous_decode_steps: int | None
    batch_wait_timeout_iters: int | None
    batch_wait_max_tokens_ratio: float | None
    attention_dp_timeout_iters: int | None
    attention_dp_batching_wait_iters: int | None
    lora_adapters: int | None
    lora_skew: float | None
    max_loras: int | None
    max_lora_rank: int | None
    max_memory: int | str | None
    max_seconds: float | None

class CompareGpusKeywords(TypedDict, total=False):
    predictor: Literal["learned", "roofline"] | None
    clocks: float | str | None
    host: Literal["fast", "typical", "slow"] | None
    images: int | None
    image_size: int | None
    power_cap_w: float | str | None
    price_per_gpu_hour: float | str | Mapping[str, float] | None
    price_per_kwh: float | None
    carbon_g_per_kwh: float | None
    mode: Literal["inference", "training"] | None
    batch: int | None
    seq: int | None
    decoder_seq: int | None
    dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8", "awq", "gptq", "int4", "w4a16", "nvfp4", "mxfp4"] | None
    attention: Literal["eager", "flash"] | None
    fusion: Literal["none", "pointwise", "inductor"] | None
    memory_format: Literal["channels-first", "channels-last"] | None
    optimizer: Literal["none", "sgd", "adam", "adamw", "muon", "adafactor", "adam8bit", "lion"] | None
    optimizer_impl: Literal["foreach", "fused", "for-loop"] | None
    optimizer_offload: bool | Literal["on", "off"] | None
    host_memory_gb_s: float | None
    zero_grad: Literal["set-to-none", "zeros"] | None
    loss: Literal["none", "memory", "full"] | None
    cross_entropy: Literal["log-softmax", "in-place", "compiled", "chunked"] | None
    teacher: str | None
    fp8_recipe: Literal["delayed", "tensorwise", "blockwise", "mxfp8"] | None
    num_layers_at_start_in_bf16: int | None
    num_layers_at_end_in_bf16: int | None
    parameter_transpose_cache: bool | Literal["on", "off"] | None
    packed_sequence_length: int | None
    checkpointing: Literal["none", "selective", "full"] | None
    recompute_modules: str | Sequence[str] | None
    lora_rank: int | None
    lora_targets: str | Sequence[str] | None
    tokens: int | None
    lora_dtype: Literal["as-model", "fp32"] | None
    dim: str | Mapping[str, float] | None
    skip_unsupported: bool | None
    software: Literal["pytorch", "vllm", "sglang", "trtllm", "megatron"] | None
    software_version: str | None
    host_launch_us: float | None
    steps: int | None
    guidance: float | None
    height: int | None
    width: int | None
    frames: int | None
    fps: float | None
    ulysses_degree: int | None
    ring_degree: int | None
    cfg_degree: int | None
    cluster: str | None
    nodes: int | None
    tp: int | None
    pp: int | None
    dp: int | None
    cp: int | None
    cp_comm_type: Literal["allgather", "p2p", "a2a"] | None
    ep: int | None
    skew: int | None
    microbatches: int | None
    micro_batch_size: int | None
    pipeline_schedule: Literal["gpipe", "1f1b", "interleaved", "zero-bubble", "zb-v"] | None
    num_layers_per_virtual_pipeline_stage: int | None
    pipeline_layers: str | None
    sequence_parallel: bool | Literal["on", "off"] | None
    tp_comm_overlap: bool | Literal["on", "off"] | None
    overlap_moe_expert_parallel_comm: bool | Literal["on", "off"] | None
    moe_token_dispatcher_type: Literal["alltoall", "flex"] | None
    expert_tensor_parallel_size: int | None
    make_vocab_size_divisible_by: int | None
    zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None
    bucket_cap_mb: float | None
    overlap_grad_reduce: bool | Literal["on", "off"] | None
    main_params_dtype: Literal["as-model", "fp32"] | None
    slow_ranks: str | None
    prompt: int | str | None
    output: int | str | None
    kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None
    schedule: Literal["static", "continuous"] | None
    rate: float | None
    concurrency: int | None
    trace: Path | None
    requests: int | None
    session_turns: int | None
    session_turn_delay_s: float | None
    warmup_request_count: int | None
    prefix_len: int | None
    num_prefixes: int | None
    hash_block_size: int | None
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    gpu_memory_utilization: float | None
    max_model_len: int | None
    prefix_hit_rate: float | None
    enable_prefix_caching: bool | Literal["on", "off"] | None
    kv_offloading_size: float | None
    server_overhead_s: float | None
    request_turn_us: float | None
    ttft_s: float | None
    tpot_s: float | None
    cuda_graphs: bool | Literal["on", "off"] | None
    count_cuda_graphs: bool | Literal["on", "off"] | None
    step_overhead_us: float | None
    sequence_overhead_us: float | None
    all2all_backend: Literal["allgather_reducescatter", "deepep"] | None
    replicas: int | None
    router: Literal["round-robin", "least-loaded", "session"] | None
    prefill_workers: int | None
    prefill_tp: int | None
    prefill_pp: int | None
    prefill_dp: int | None
    prefill_ep: int | None
    kv_transfer: Literal["after-prefill", "by-layer"] | None
    encode_workers: int | None
    encode_tp: int | None
    speculative_tokens: int | None
    speculative_method: Literal["draft_model", "mtp", "ngram", "eagle", "eagle3"] | None
    acceptance_rate: float | None
    draft_model: str | None
    cudagraph_mode: Literal["full_decode_only", "full_and_piecewise"] | None
    max_cudagraph_capture_size: int | None
    moe_backend: Literal["auto", "marlin"] | None
    async_scheduling: bool | Literal["on", "off"] | None
    scheduler_recv_interval: int | None
    num_continuous_decode_steps: int | None
    batch_wait_timeout_iters: int | None
    batch_wait_max_tokens_ratio: float | None
    attention_dp_timeout_iters: int | None
    attention_dp_batching_wait_iters: int | None
    lora_adapters: int | None
    lora_skew: float | None
    max_loras: int | None
    max_lora_rank: int | None
    max_memory: int | str | None
    max_seconds: float | None

class MemoryTimelineKeywords(TypedDict, total=False):
    predictor: Literal["learned", "roofline"] | None
    clocks: float | str | None
    host: Literal["fast", "typical", "slow"] | None
    images: int | None
    image_size: int | None
    power_cap_w: float | str | None
    price_per_gpu_hour: float | str | Mapping[str, float] | None
    price_per_kwh: float | None
    carbon_g_per_kwh: float | None
    mode: Literal["inference", "training"] | None
    batch: int | None
    seq: int | None
    decoder_seq: int | None
    dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8", "awq", "gptq", "int4", "w4a16", "nvfp4", "mxfp4"] | None
    attention: Literal["eager", "flash"] | None
    fusion: Literal["none", "pointwise", "inductor"] | None
    memory_format: Literal["channels-first", "channels-last"] | None
    optimizer: Literal["none", "sgd", "adam", "adamw", "muon", "adafactor", "adam8bit", "lion"] | None
    optimizer_impl: Literal["foreach", "fused", "for-loop"] | None
    optimizer_offload: bool | Literal["on", "off"] | None
    host_memory_gb_s: float | None
    zero_grad: Literal["set-to-none", "zeros"] | None
    loss: Literal["none", "memory", "full"] | None
    cross_entropy: Literal["log-softmax", "in-place", "compiled", "chunked"] | None
    teacher: str | None
    fp8_recipe: Literal["delayed", "tensorwise", "blockwise", "mxfp8"] | None
    num_layers_at_start_in_bf16: int | None
    num_layers_at_end_in_bf16: int | None
    parameter_transpose_cache: bool | Literal["on", "off"] | None
    packed_sequence_length: int | None
    checkpointing: Literal["none", "selective", "full"] | None
    recompute_modules: str | Sequence[str] | None
    lora_rank: int | None
    lora_targets: str | Sequence[str] | None
    tokens: int | None
    lora_dtype: Literal["as-model", "fp32"] | None
    dim: str | Mapping[str, float] | None
    skip_unsupported: bool | None
    software: Literal["pytorch", "vllm", "sglang", "trtllm", "megatron"] | None
    software_version: str | None
    host_launch_us: float | None
    steps: int | None
    guidance: float | None
    height: int | None
    width: int | None
    frames: int | None
    fps: float | None
    ulysses_degree: int | None
    ring_degree: int | None
    cfg_degree: int | None
    cluster: str | None
    nodes: int | None
    tp: int | None
    pp: int | None
    dp: int | None
    cp: int | None
    cp_comm_type: Literal["allgather", "p2p", "a2a"] | None
    ep: int | None
    skew: int | None
    microbatches: int | None
    micro_batch_size: int | None
    pipeline_schedule: Literal["gpipe", "1f1b", "interleaved", "zero-bubble", "zb-v"] | None
    num_layers_per_virtual_pipeline_stage: int | None
    pipeline_layers: str | None
    sequence_parallel: bool | Literal["on", "off"] | None
    tp_comm_overlap: bool | Literal["on", "off"] | None
    overlap_moe_expert_parallel_comm: bool | Literal["on", "off"] | None
    moe_token_dispatcher_type: Literal["alltoall", "flex"] | None
    expert_tensor_parallel_size: int | None
    make_vocab_size_divisible_by: int | None
    zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None
    bucket_cap_mb: float | None
    overlap_grad_reduce: bool | Literal["on", "off"] | None
    main_params_dtype: Literal["as-model", "fp32"] | None
    slow_ranks: str | None
    prompt: int | str | None
    output: int | str | None
    kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None
    schedule: Literal["static", "continuous"] | None
    rate: float | None
    concurrency: int | None
    trace: Path | None
    requests: int | None
    session_turns: int | None
    session_turn_delay_s: float | None
    warmup_request_count: int | None
    prefix_len: int | None
    num_prefixes: int | None
    hash_block_size: int | None
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    gpu_memory_utilization: float | None
    max_model_len: int | None
    prefix_hit_rate: float | None
    enable_prefix_caching: bool | Literal["on", "off"] | None
    kv_offloading_size: float | None
    server_overhead_s: float | None
    request_turn_us: float | None
    ttft_s: float | None
    tpot_s: float | None
    cuda_graphs: bool | Literal["on", "off"] | None
    count_cuda_graphs: bool | Literal["on", "off"] | None
    step_overhead_us: float | None
    sequence_overhead_us: float | None
    all2all_backend: Literal["allgather_reducescatter", "deepep"] | None
    replicas: int | None
    router: Literal["round-robin", "least-loaded", "session"] | None
    prefill_workers: int | None
    prefill_tp: int | None
    prefill_pp: int | None
    prefill_dp: int | None
    prefill_ep: int | None
    kv_transfer: Literal["after-prefill", "by-layer"] | None
    encode_workers: int | None
    encode_tp: int | None
    speculative_tokens: int | None
    speculative_method: Literal["draft_model", "mtp", "ngram", "eagle", "eagle3"] | None
    acceptance_rate: float | None
    draft_model: str | None
    cudagraph_mode: Literal["full_decode_only", "full_and_piecewise"] | None
    max_cudagraph_capture_size: int | None
    moe_backend: Literal["auto", "marlin"] | None
    async_scheduling: bool | Literal["on", "off"] | None
    scheduler_recv_interval: int | None
    num_continuous_decode_steps: int | None
    batch_wait_timeout_iters: int | None
    batch_wait_max_tokens_ratio: float | None
    attention_dp_timeout_iters: int | None
    attention_dp_batching_wait_iters: int | None
    lora_adapters: int | None
    lora_skew: float | None
    max_loras: int | None
    max_lora_rank: int | None
    max_memory: int | str | None
    max_seconds: float | None

class PowerTimelineKeywords(TypedDict, total=False):
    predictor: Literal["learned", "roofline"] | None
    clocks: float | str | None
    host: Literal["fast", "typical", "slow"] | None
    images: int | None
    image_size: int | None
    power_cap_w: float | str | None
    price_per_gpu_hour: float | str | Mapping[str, float] | None
    price_per_kwh: float | None
    carbon_g_per_kwh: float | None
    mode: Literal["inference", "training"] | None
    batch: int | None
    seq: int | None
    decoder_seq: int | None
    dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8", "awq", "gptq", "int4", "w4a16", "nvfp4", "mxfp4"] | None
    attention: Literal["eager", "flash"] | None
    fusion: Literal["none", "pointwise", "inductor"] | None
    memory_format: Literal["channels-first", "channels-last"] | None
    optimizer: Literal["none", "sgd", "adam", "adamw", "muon", "adafactor", "adam8bit", "lion"] | None
    optimizer_impl: Literal["foreach", "fused", "for-loop"] | None
    optimizer_offload: bool | Literal["on", "off"] | None
    host_memory_gb_s: float | None
    zero_grad: Literal["set-to-none", "zeros"] | None
    loss: Literal["none", "memory", "full"] | None
    cross_entropy: Literal["log-softmax", "in-place", "compiled", "chunked"] | None
    teacher: str | None
    fp8_recipe: Literal["delayed", "tensorwise", "blockwise", "mxfp8"] | None
    num_layers_at_start_in_bf16: int | None
    num_layers_at_end_in_bf16: int | None
    parameter_transpose_cache: bool | Literal["on", "off"] | None
    packed_sequence_length: int | None
    checkpointing: Literal["none", "selective", "full"] | None
    recompute_modules: str | Sequence[str] | None
    lora_rank: int | None
    lora_targets: str | Sequence[str] | None
    tokens: int | None
    lora_dtype: Literal["as-model", "fp32"] | None
    dim: str | Mapping[str, float] | None
    skip_unsupported: bool | None
    software: Literal["pytorch", "vllm", "sglang", "trtllm", "megatron"] | None
    software_version: str | None
    host_launch_us: float | None
    steps: int | None
    guidance: float | None
    height: int | None
    width: int | None
    frames: int | None
    fps: float | None
    ulysses_degree: int | None
    ring_degree: int | None
    cfg_degree: int | None
    cluster: str | None
    nodes: int | None
    tp: int | None
    pp: int | None
    dp: int | None
    cp: int | None
    cp_comm_type: Literal["allgather", "p2p", "a2a"] | None
    ep: int | None
    skew: int | None
    microbatches: int | None
    micro_batch_size: int | None
    pipeline_schedule: Literal["gpipe", "1f1b", "interleaved", "zero-bubble", "zb-v"] | None
    num_layers_per_virtual_pipeline_stage: int | None
    pipeline_layers: str | None
    sequence_parallel: bool | Literal["on", "off"] | None
    tp_comm_overlap: bool | Literal["on", "off"] | None
    overlap_moe_expert_parallel_comm: bool | Literal["on", "off"] | None
    moe_token_dispatcher_type: Literal["alltoall", "flex"] | None
    expert_tensor_parallel_size: int | None
    make_vocab_size_divisible_by: int | None
    zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None
    bucket_cap_mb: float | None
    overlap_grad_reduce: bool | Literal["on", "off"] | None
    main_params_dtype: Literal["as-model", "fp32"] | None
    slow_ranks: str | None
    prompt: int | str | None
    output: int | str | None
    kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None
    schedule: Literal["static", "continuous"] | None
    rate: float | None
    concurrency: int | None
    trace: Path | None
    requests: int | None
    session_turns: int | None
    session_turn_delay_s: float | None
    warmup_request_count: int | None
    prefix_len: int | None
    num_prefixes: int | None
    hash_block_size: int | None
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    gpu_memory_utilization: float | None
    max_model_len: int | None
    prefix_hit_rate: float | None
    enable_prefix_caching: bool | Literal["on", "off"] | None
    kv_offloading_size: float | None
    server_overhead_s: float | None
    request_turn_us: float | None
    ttft_s: float | None
    tpot_s: float | None
    cuda_graphs: bool | Literal["on", "off"] | None
    count_cuda_graphs: bool | Literal["on", "off"] | None
    step_overhead_us: float | None
    sequence_overhead_us: float | None
    all2all_backend: Literal["allgather_reducescatter", "deepep"] | None
    replicas: int | None
    router: Literal["round-robin", "least-loaded", "session"] | None
    prefill_workers: int | None
    prefill_tp: int | None
    prefill_pp: int | None
    prefill_dp: int | None
    prefill_ep: int | None
    kv_transfer: Literal["after-prefill", "by-layer"] | None
    encode_workers: int | None
    encode_tp: int | None
    speculative_tokens: int | None
    speculative_method: Literal["draft_model", "mtp", "ngram", "eagle", "eagle3"] | None
    acceptance_rate: float | None
    draft_model: str | None
    cudagraph_mode: Literal["full_decode_only", "full_and_piecewise"] | None
    max_cudagraph_capture_size: int | None
    moe_backend: Literal["auto", "marlin"] | None
    async_scheduling: bool | Literal["on", "off"] | None
    scheduler_recv_interval: int | None
    num_continuous_decode_steps: int | None
    batch_wait_timeout_iters: int | None
    batch_wait_max_tokens_ratio: float | None
    attention_dp_timeout_iters: int | None
    attention_dp_batching_wait_iters: int | None
    lora_adapters: int | None
    lora_skew: float | None
    max_loras: int | None
    max_lora_rank: int | None
    max_memory: int | str | None
    max_seconds: float | None

class StepOperationsKeywords(TypedDict, total=False):
    predictor: Literal["learned", "roofline"] | None
    clocks: float | str | None
    host: Literal["fast", "typical", "slow"] | None
    images: int | None
    image_size: int | None
    power_cap_w: float | str | None
    price_per_gpu_hour: float | str | Mapping[str, float] | None
    price_per_kwh: float | None
    carbon_g_per_kwh: float | None
    mode: Literal["inference", "training"] | None
    batch: int | None
    seq: int | None
    decoder_seq: int | None
    dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8", "awq", "gptq", "int4", "w4a16", "nvfp4", "mxfp4"] | None
    attention: Literal["eager", "flash"] | None
    fusion: Literal["none", "pointwise", "inductor"] | None
    memory_format: Literal["channels-first", "channels-last"] | None
    optimizer: Literal["none", "sgd", "adam", "adamw", "muon", "adafactor", "adam8bit", "lion"] | None
    optimizer_impl: Literal["foreach", "fused", "for-loop"] | None
    optimizer_offload: bool | Literal["on", "off"] | None
    host_memory_gb_s: float | None
    zero_grad: Literal["set-to-none", "zeros"] | None
    loss: Literal["none", "memory", "full"] | None
    cross_entropy: Literal["log-softmax", "in-place", "compiled", "chunked"] | None
    teacher: str | None
    fp8_recipe: Literal["delayed", "tensorwise", "blockwise", "mxfp8"] | None
    num_layers_at_start_in_bf16: int | None
    num_layers_at_end_in_bf16: int | None
    parameter_transpose_cache: bool | Literal["on", "off"] | None
    packed_sequence_length: int | None
    checkpointing: Literal["none", "selective", "full"] | None
    recompute_modules: str | Sequence[str] | None
    lora_rank: int | None
    lora_targets: str | Sequence[str] | None
    tokens: int | None
    lora_dtype: Literal["as-model", "fp32"] | None
    dim: str | Mapping[str, float] | None
    skip_unsupported: bool | None
    software: Literal["pytorch", "vllm", "sglang", "trtllm", "megatron"] | None
    software_version: str | None
    host_launch_us: float | None
    steps: int | None
    guidance: float | None
    height: int | None
    width: int | None
    frames: int | None
    fps: float | None
    ulysses_degree: int | None
    ring_degree: int | None
    cfg_degree: int | None
    cluster: str | None
    nodes: int | None
    tp: int | None
    pp: int | None
    dp: int | None
    cp: int | None
    cp_comm_type: Literal["allgather", "p2p", "a2a"] | None
    ep: int | None
    skew: int | None
    microbatches: int | None
    micro_batch_size: int | None
    pipeline_schedule: Literal["gpipe", "1f1b", "interleaved", "zero-bubble", "zb-v"] | None
    num_layers_per_virtual_pipeline_stage: int | None
    pipeline_layers: str | None
    sequence_parallel: bool | Literal["on", "off"] | None
    tp_comm_overlap: bool | Literal["on", "off"] | None
    overlap_moe_expert_parallel_comm: bool | Literal["on", "off"] | None
    moe_token_dispatcher_type: Literal["alltoall", "flex"] | None
    expert_tensor_parallel_size: int | None
    make_vocab_size_divisible_by: int | None
    zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None
    bucket_cap_mb: float | None
    overlap_grad_reduce: bool | Literal["on", "off"] | None
    main_params_dtype: Literal["as-model", "fp32"] | None
    slow_ranks: str | None
    prompt: int | str | None
    output: int | str | None
    kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None
    schedule: Literal["static", "continuous"] | None
    rate: float | None
    concurrency: int | None
    trace: Path | None
    requests: int | None
    session_turns: int | None
    session_turn_delay_s: float | None
    warmup_request_count: int | None
    prefix_len: int | None
    num_prefixes: int | None
    hash_block_size: int | None
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    gpu_memory_utilization: float | None
    max_model_len: int | None
    prefix_hit_rate: float | None
    enable_prefix_caching: bool | Literal["on", "off"] | None
    kv_offloading_size: float | None
    server_overhead_s: float | None
    request_turn_us: float | None
    ttft_s: float | None
    tpot_s: float | None
    cuda_graphs: bool | Literal["on", "off"] | None
    count_cuda_graphs: bool | Literal["on", "off"] | None
    step_overhead_us: float | None
    sequence_overhead_us: float | None
    all2all_backend: Literal["allgather_reducescatter", "deepep"] | None
    replicas: int | None
    router: Literal["round-robin", "least-loaded", "session"] | None
    prefill_workers: int | None
    prefill_tp: int | None
    prefill_pp: int | None
    prefill_dp: int | None
    prefill_ep: int | None
    kv_transfer: Literal["after-prefill", "by-layer"] | None
    encode_workers: int | None
    encode_tp: int | None
    speculative_tokens: int | None
    speculative_method: Literal["draft_model", "mtp", "ngram", "eagle", "eagle3"] | None
    acceptance_rate: float | None
    draft_model: str | None
    cudagraph_mode: Literal["full_decode_only", "full_and_piecewise"] | None
    max_cudagraph_capture_size: int | None
    moe_backend: Literal["auto", "marlin"] | None
    async_scheduling: bool | Literal["on", "off"] | None
    scheduler_recv_interval: int | None
    num_continuous_decode_steps: int | None
    batch_wait_timeout_iters: int | None
    batch_wait_max_tokens_ratio: float | None
    attention_dp_timeout_iters: int | None
    attention_dp_batching_wait_iters: int | None
    lora_adapters: int | None
    lora_skew: float | None
    max_loras: int | None
    max_lora_rank: int | None
    max_memory: int | str | None
    max_seconds: float | None

class OccupancyKeywords(TypedDict, total=False):
    predictor: Literal["learned", "roofline"] | None
    clocks: float | str | None
    host: Literal["fast", "typical", "slow"] | None
    images: int | None
    image_size: int | None
    power_cap_w: float | str | None
    price_per_gpu_hour: float | str | Mapping[str, float] | None
    price_per_kwh: float | None
    carbon_g_per_kwh: float | None
    mode: Literal["inference", "training"] | None
    batch: int | None
    seq: int | None
    decoder_seq: int | None
    dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8", "awq", "gptq", "int4", "w4a16", "nvfp4", "mxfp4"] | None
    attention: Literal["eager", "flash"] | None
    fusion: Literal["none", "pointwise", "inductor"] | None
    memory_format: Literal["channels-first", "channels-last"] | None
    optimizer: Literal["none", "sgd", "adam", "adamw", "muon", "adafactor", "adam8bit", "lion"] | None
    optimizer_impl: Literal["foreach", "fused", "for-loop"] | None
    optimizer_offload: bool | Literal["on", "off"] | None
    host_memory_gb_s: float | None
    zero_grad: Literal["set-to-none", "zeros"] | None
    loss: Literal["none", "memory", "full"] | None
    cross_entropy: Literal["log-softmax", "in-place", "compiled", "chunked"] | None
    teacher: str | None
    fp8_recipe: Literal["delayed", "tensorwise", "blockwise", "mxfp8"] | None
    num_layers_at_start_in_bf16: int | None
    num_layers_at_end_in_bf16: int | None
    parameter_transpose_cache: bool | Literal["on", "off"] | None
    packed_sequence_length: int | None
    checkpointing: Literal["none", "selective", "full"] | None
    recompute_modules: str | Sequence[str] | None
    lora_rank: int | None
    lora_targets: str | Sequence[str] | None
    tokens: int | None
    lora_dtype: Literal["as-model", "fp32"] | None
    dim: str | Mapping[str, float] | None
    skip_unsupported: bool | None
    software: Literal["pytorch", "vllm", "sglang", "trtllm", "megatron"] | None
    software_version: str | None
    host_launch_us: float | None
    steps: int | None
    guidance: float | None
    height: int | None
    width: int | None
    frames: int | None
    fps: float | None
    ulysses_degree: int | None
    ring_degree: int | None
    cfg_degree: int | None
    cluster: str | None
    nodes: int | None
    tp: int | None
    pp: int | None
    dp: int | None
    cp: int | None
    cp_comm_type: Literal["allgather", "p2p", "a2a"] | None
    ep: int | None
    skew: int | None
    microbatches: int | None
    micro_batch_size: int | None
    pipeline_schedule: Literal["gpipe", "1f1b", "interleaved", "zero-bubble", "zb-v"] | None
    num_layers_per_virtual_pipeline_stage: int | None
    pipeline_layers: str | None
    sequence_parallel: bool | Literal["on", "off"] | None
    tp_comm_overlap: bool | Literal["on", "off"] | None
    overlap_moe_expert_parallel_comm: bool | Literal["on", "off"] | None
    moe_token_dispatcher_type: Literal["alltoall", "flex"] | None
    expert_tensor_parallel_size: int | None
    make_vocab_size_divisible_by: int | None
    zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None
    bucket_cap_mb: float | None
    overlap_grad_reduce: bool | Literal["on", "off"] | None
    main_params_dtype: Literal["as-model", "fp32"] | None
    slow_ranks: str | None
    prompt: int | str | None
    output: int | str | None
    kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None
    schedule: Literal["static", "continuous"] | None
    rate: float | None
    concurrency: int | None
    trace: Path | None
    requests: int | None
    session_turns: int | None
    session_turn_delay_s: float | None
    warmup_request_count: int | None
    prefix_len: int | None
    num_prefixes: int | None
    hash_block_size: int | None
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    gpu_memory_utilization: float | None
    max_model_len: int | None
    prefix_hit_rate: float | None
    enable_prefix_caching: bool | Literal["on", "off"] | None
    kv_offloading_size: float | None
    server_overhead_s: float | None
    request_turn_us: float | None
    ttft_s: float | None
    tpot_s: float | None
    cuda_graphs: bool | Literal["on", "off"] | None
    count_cuda_graphs: bool | Literal["on", "off"] | None
    step_overhead_us: float | None
    sequence_overhead_us: float | None
    all2all_backend: Literal["allgather_reducescatter", "deepep"] | None
    replicas: int | None
    router: Literal["round-robin", "least-loaded", "session"] | None
    prefill_workers: int | None
    prefill_tp: int | None
    prefill_pp: int | None
    prefill_dp: int | None
    prefill_ep: int | None
    kv_transfer: Literal["after-prefill", "by-layer"] | None
    encode_workers: int | None
    encode_tp: int | None
    speculative_tokens: int | None
    speculative_method: Literal["draft_model", "mtp", "ngram", "eagle", "eagle3"] | None
    acceptance_rate: float | None
    draft_model: str | None
    cudagraph_mode: Literal["full_decode_only", "full_and_piecewise"] | None
    max_cudagraph_capture_size: int | None
    moe_backend: Literal["auto", "marlin"] | None
    async_scheduling: bool | Literal["on", "off"] | None
    scheduler_recv_interval: int | None
    num_continuous_decode_steps: int | None
    batch_wait_timeout_iters: int | None
    batch_wait_max_tokens_ratio: float | None
    attention_dp_timeout_iters: int | None
    attention_dp_batching_wait_iters: int | None
    lora_adapters: int | None
    lora_skew: float | None
    max_loras: int | None
    max_lora_rank: int | None
    exact: bool | None
    mapping: str | None
    parameters: str | Mapping[str, float] | None
    max_memory: int | str | None
    max_seconds: float | None

class CompareKeywords(TypedDict, total=False):
    model: ModelLike | None
    gpu: GpuLike | None
    predictor: Literal["learned", "roofline"] | None
    clocks: float | str | None
    host: Literal["fast", "typical", "slow"] | None
    images: int | None
    image_size: int | None
    power_cap_w: float | str | None
    price_per_gpu_hour: float | str | Mapping[str, float] | None
    price_per_kwh: float | None
    carbon_g_per_kwh: float | None
    mode: Literal["inference", "training"] | None
    batch: int | None
    seq: int | None
    decoder_seq: int | None
    dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8", "awq", "gptq", "int4", "w4a16", "nvfp4", "mxfp4"] | None
    attention: Literal["eager", "flash"] | None
    fusion: Literal["none", "pointwise", "inductor"] | None
    memory_format: Literal["channels-first", "channels-last"] | None
    optimizer: Literal["none", "sgd", "adam", "adamw", "muon", "adafactor", "adam8bit", "lion"] | None
    optimizer_impl: Literal["foreach", "fused", "for-loop"] | None
    optimizer_offload: bool | Literal["on", "off"] | None
    host_memory_gb_s: float | None
    zero_grad: Literal["set-to-none", "zeros"] | None
    loss: Literal["none", "memory", "full"] | None
    cross_entropy: Literal["log-softmax", "in-place", "compiled", "chunked"] | None
    teacher: str | None
    fp8_recipe: Literal["delayed", "tensorwise", "blockwise", "mxfp8"] | None
    num_layers_at_start_in_bf16: int | None
    num_layers_at_end_in_bf16: int | None
    parameter_transpose_cache: bool | Literal["on", "off"] | None
    packed_sequence_length: int | None
    checkpointing: Literal["none", "selective", "full"] | None
    recompute_modules: str | Sequence[str] | None
    lora_rank: int | None
    lora_targets: str | Sequence[str] | None
    tokens: int | None
    lora_dtype: Literal["as-model", "fp32"] | None
    dim: str | Mapping[str, float] | None
    skip_unsupported: bool | None
    software: Literal["pytorch", "vllm", "sglang", "trtllm", "megatron"] | None
    software_version: str | None
    host_launch_us: float | None
    steps: int | None
    guidance: float | None
    height: int | None
    width: int | None
    frames: int | None
    fps: float | None
    ulysses_degree: int | None
    ring_degree: int | None
    cfg_degree: int | None
    cluster: str | None
    nodes: int | None
    tp: int | None
    pp: int | None
    dp: int | None
    cp: int | None
    cp_comm_type: Literal["allgather", "p2p", "a2a"] | None
    ep: int | None
    skew: int | None
    microbatches: int | None
    micro_batch_size: int | None
    pipeline_schedule: Literal["gpipe", "1f1b", "interleaved", "zero-bubble", "zb-v"] | None
    num_layers_per_virtual_pipeline_stage: int | None
    pipeline_layers: str | None
    sequence_parallel: bool | Literal["on", "off"] | None
    tp_comm_overlap: bool | Literal["on", "off"] | None
    overlap_moe_expert_parallel_comm: bool | Literal["on", "off"] | None
    moe_token_dispatcher_type: Literal["alltoall", "flex"] | None
    expert_tensor_parallel_size: int | None
    make_vocab_size_divisible_by: int | None
    zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None
    bucket_cap_mb: float | None
    overlap_grad_reduce: bool | Literal["on", "off"] | None
    main_params_dtype: Literal["as-model", "fp32"] | None
    slow_ranks: str | None
    prompt: int | str | None
    output: int | str | None
    kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None
    schedule: Literal["static", "continuous"] | None
    rate: float | None
    concurrency: int | None
    trace: Path | None
    requests: int | None
    session_turns: int | None
    session_turn_delay_s: float | None
    warmup_request_count: int | None
    prefix_len: int | None
    num_prefixes: int | None
    hash_block_size: int | None
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    gpu_memory_utilization: float | None
    max_model_len: int | None
    prefix_hit_rate: float | None
    enable_prefix_caching: bool | Literal["on", "off"] | None
    kv_offloading_size: float | None
    server_overhead_s: float | None
    request_turn_us: float | None
    ttft_s: float | None
    tpot_s: float | None
    cuda_graphs: bool | Literal["on", "off"] | None
    count_cuda_graphs: bool | Literal["on", "off"] | None
    step_overhead_us: float | None
    sequence_overhead_us: float | None
    all2all_backend: Literal["allgather_reducescatter", "deepep"] | None
    replicas: int | None
    router: Literal["round-robin", "least-loaded", "session"] | None
    prefill_workers: int | None
    prefill_tp: int | None
    prefill_pp: int | None
    prefill_dp: int | None
    prefill_ep: int | None
    kv_transfer: Literal["after-prefill", "by-layer"] | None
    encode_workers: int | None
    encode_tp: int | None
    speculative_tokens: int | None
    speculative_method: Literal["draft_model", "mtp", "ngram", "eagle", "eagle3"] | None
    acceptance_rate: float | None
    draft_model: str | None
    cudagraph_mode: Literal["full_decode_only", "full_and_piecewise"] | None
    max_cudagraph_capture_size: int | None
    moe_backend: Literal["auto", "marlin"] | None
    async_scheduling: bool | Literal["on", "off"] | None
    scheduler_recv_interval: int | None
    num_continuous_decode_steps: int | None
    batch_wait_timeout_iters: int | None
    batch_wait_max_tokens_ratio: float | None
    attention_dp_timeout_iters: int | None
    attention_dp_batching_wait_iters: int | None
    lora_adapters: int | None
    lora_skew: float | None
    max_loras: int | None
    max_lora_rank: int | None
    max_memory: int | str | None
    max_seconds: float | None

class KernelKeywords(TypedDict, total=False):
    dtype: Literal["fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"] | None
    software: Literal["pytorch", "vllm", "sglang", "trtllm", "rocblas", "pipeweave", "aiter", "megatron"] | None
    warm: bool | None
    predictor: Literal["learned", "roofline"] | None
    clocks: float | str | None
    batch: int | None
    m: int | None
    n: int | None
    k: int | None
    scheme: Literal["fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None
    trans_a: bool | None
    trans_b: bool | None
    queries: int | None
    keys: int | None
    heads: int | None
    kv_heads: int | None
    head_dim: int | None
    v_head_dim: int | None
    window: int | None
    causal: bool | None
    kv_dtype: Literal["fp32", "bf16", "fp16", "fp8", "int8"] | None
    latent: bool | None
    tokens: int | None
    width: int | None
    state_dim: int | None
    groups: int | None
    delta: bool | None
    cached: bool | None
    channels: int | None
    ffn_dim: int | None
    hidden_dim: int | None
    num_experts: int | None
    top_k: int | None
    ranks: int | None
    skew: int | None
    gated: int | None
    bags: int | None
    pooling: int | None
    dim: int | None
    table_rows: int | None
    reuse: str | None
    rows: int | None
    columns: int | None
    in_channels: int | None
    out_channels: int | None
    height: int | None
    window_height: int | None
    window_width: int | None
    stride: int | None
    padding: int | None
    channels_last: bool | None
    more_columns: int | None
    selected: int | None
    depth: int | None
    dilation: int | None
    transposed: bool | None
    steps: int | None
    in_features: int | None
    gates: int | None
    directions: int | None
    tables: int | None
    skew_percent: int | None
    adapters: int | None
    max_memory: int | str | None
    max_seconds: float | None

class CollectiveKeywords(TypedDict, total=False):
    ranks_per_node: int | None
    nodes: int | None
    concurrent: int | None
    dtype: str | None
    software: Literal["pytorch", "vllm", "sglang", "trtllm", "megatron"] | None
    max_memory: int | str | None
    max_seconds: float | None

class PlanKeywords(TypedDict, total=False):
    cluster: str | None
    nodes: int | None
    lora_rank: int | None
    lora_targets: str | Sequence[str] | None
    clocks: float | str | None
    host: Literal["fast", "typical", "slow"] | None
    power_cap_w: str | None
    num_gpus: int | None
    price_per_gpu_hour: float | str | Mapping[str, float] | None
    objective: Literal["time", "cost", "memory", "energy"] | None
    full_search: bool | None
    tp: int | Sequence[int] | None
    pp: int | Sequence[int] | None
    ep: int | Sequence[int] | None
    dtype: int | str | Sequence[int | str] | None
    batch: int | None
    seq: int | None
    attention: Literal["eager", "flash"] | None
    fusion: Literal["none", "pointwise", "inductor"] | None
    optimizer: Literal["none", "sgd", "adam", "adamw", "muon", "adafactor", "adam8bit", "lion"] | None
    optimizer_impl: Literal["foreach", "fused", "for-loop"] | None
    optimizer_offload: bool | Literal["on", "off"] | None
    host_memory_gb_s: float | None
    loss: Literal["none", "memory", "full"] | None
    cross_entropy: Literal["log-softmax", "in-place", "compiled", "chunked"] | None
    packed_sequence_length: int | None
    cp_comm_type: Literal["allgather", "p2p", "a2a"] | None
    main_params_dtype: Literal["as-model", "fp32"] | None
    overlap_grad_reduce: bool | Literal["on", "off"] | None
    bucket_cap_mb: float | None
    lora_dtype: Literal["as-model", "fp32"] | None
    predictor: Literal["learned", "roofline"] | None
    price_per_kwh: float | None
    host_launch_us: float | None
    memory_reserve: float | None
    top: int | None
    cp: int | Sequence[int] | None
    micro_batch_size: int | Sequence[int] | None
    pipeline_schedule: int | str | Sequence[int | str] | None
    virtual_stages: int | Sequence[int] | None
    zero: int | str | Sequence[int | str] | None
    checkpointing: int | str | Sequence[int | str] | None
    sequence_parallel: int | str | Sequence[int | str] | None
    output: int | str | None
    software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None
    software_version: str | None
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    gpu_memory_utilization: float | None
    max_model_len: int | None
    prefix_hit_rate: float | None
    session_turns: int | None
    session_turn_delay_s: float | None
    prefix_len: int | None
    num_prefixes: int | None
    enable_prefix_caching: bool | Literal["on", "off"] | None
    kv_offloading_size: float | None
    router: Literal["round-robin", "least-loaded", "session"] | None
    lora_adapters: int | None
    lora_skew: float | None
    max_loras: int | None
    max_lora_rank: int | None
    server_overhead_s: float | None
    request_turn_us: float | None
    rate: float | None
    ttft_s: float | None
    tpot_s: float | None
    cuda_graphs: bool | Literal["on", "off"] | None
    skew: int | None
    step_overhead_us: float | None
    sequence_overhead_us: float | None
    clients: int | None
    percentile: Literal["mean", "median", "p99"] | None
    dp: int | Sequence[int] | None
    prefill_workers: int | Sequence[int] | None
    concurrency: int | Sequence[int] | None
    kv_dtype: int | str | Sequence[int | str] | None
    max_memory: int | str | None
    max_seconds: float | None

class ShardKeywords(TypedDict, total=False):
    nodes: int | None
    batch: int | None
    dtype: Literal["fp32", "fp16", "bf16"] | None
    gpu_memory_utilization: float | None
    seed: int | None
    max_memory: int | str | None
    max_seconds: float | None

class EvaluateKeywords(TypedDict, total=False):
    jobs: Path | None
    how: str | None
    series: str | None
    pairs: bool | None
    servers: Path | None
    points: int | None
    predictor: Literal["learned", "roofline"] | None
    max_memory: int | str | None
    max_seconds: float | None

class TrainKeywords(TypedDict, total=False):
    collectives: bool | None
    laws: bool | None
    law_folder: Path | None
    exclude_gpu: GpuLike | Sequence[GpuLike] | None
    trees: int | None
    seed: int | None
    threads: int | None
    intervals: Literal["leave-one-out", "held-out"] | None
    max_memory: int | str | None
    max_seconds: float | None

class TuneKeywords(TypedDict, total=False):
    solver: str | None
    top: int | None
    beam: int | None
    from_log: Path | None
    mode: Literal["inference", "training"] | None
    batch: int | None
    seq: int | None
    dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8", "awq", "gptq", "int4", "w4a16", "nvfp4", "mxfp4"] | None
    max_memory: int | str | None
    max_seconds: float | None

class SweepKeywords(TypedDict, total=False):
    output_file: Path | None
    pareto: int | str | Sequence[int | str] | None
    columns: bool | None
    threads: int | None
    max_memory: int | str | None
    max_seconds: float | None

class ShareKeywords(TypedDict, total=False):
    job: str | Sequence[str] | None
    jobs: Path | Sequence[Path] | None
    how: Literal["time-slice", "mps", "streams", "mig"] | None
    pairs: Path | None
    max_memory: int | str | None
    max_seconds: float | None

class AllocateKeywords(TypedDict, total=False):
    objective: Literal["throughput", "makespan", "fairness", "finish-time", "cost", "deadline", "energy"] | None
    share: bool | None
    how: Literal["time-slice", "mps", "streams"] | None
    whole: bool | None
    price_per_gpu_hour: float | str | Mapping[str, float] | None
    host_factor: int | str | Sequence[int | str] | None
    threads: int | None
    max_memory: int | str | None
    max_seconds: float | None

class TraceKeywords(TypedDict, total=False):
    cluster: Path | None
    batch: str | None
    dtype: Literal["bf16", "fp16", "fp32", "tf32"] | None
    traced_gpu: GpuLike | None
    trace_host: str | None
    beside: Path | None
    max_memory: int | str | None
    max_seconds: float | None

class TraceTimelineKeywords(TypedDict, total=False):
    cluster: Path | None
    batch: str | None
    dtype: Literal["bf16", "fp16", "fp32", "tf32"] | None
    traced_gpu: GpuLike | None
    trace_host: str | None
    beside: Path | None
    max_memory: int | str | None
    max_seconds: float | None

class CalibrateKeywords(TypedDict, total=False):
    measurements: Path | Sequence[Path] | None
    trace: Path | Sequence[Path] | None
    output_file: Path | None
    weights: Path | None
    max_memory: int | str | None
    max_seconds: float | None

class CalibratePairsKeywords(TypedDict, total=False):
    how: Literal["time-slice", "mps", "streams"] | None
    max_memory: int | str | None
    max_seconds: float | None

class SuggestKernelsKeywords(TypedDict, total=False):
    suggest: int | None
    model: ModelLike | None
    candidates: Path | None
    mode: Literal["inference", "training"] | None
    batch: int | None
    seq: int | None
    dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8", "awq", "gptq", "int4", "w4a16", "nvfp4", "mxfp4"] | None
    attention: Literal["eager", "flash"] | None
    software: Literal["pytorch", "vllm", "sglang", "trtllm", "megatron"] | None
    prompt: int | str | None
    kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None
    weights: Path | None
    max_memory: int | str | None
    max_seconds: float | None

class GpusKeywords(TypedDict, total=False):
    max_memory: int | str | None
    max_seconds: float | None

class ClustersKeywords(TypedDict, total=False):
    max_memory: int | str | None
    max_seconds: float | None

class ModelsKeywords(TypedDict, total=False):
    max_memory: int | str | None
    max_seconds: float | None

class OpsKeywords(TypedDict, total=False):
    max_memory: int | str | None
    max_seconds: float | None

class DataFileKeywords(TypedDict, total=False):
    max_memory: int | str | None
    max_seconds: float | None

class DoctorKeywords(TypedDict, total=False):
    max_memory: int | str | None
    max_seconds: float | None

class Forecaster:
    """Forecasts with one set of weights."""
    def __init__(self, weights: Path = "", calibration: Path = "") -> None: ...
    def forecast_many(self, table: Any, *, threads: int = 0, **options: Any) -> ForecastTable: ...
    @overload
    def forecast(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, prompt: int | str, trace: Path | None = None, **options: Unpack[ForecastKeywords]) -> GenerationForecast: ...
    @overload
    def forecast(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, prompt: int | str | None = None, trace: Path, **options: Unpack[ForecastKeywords]) -> GenerationForecast: ...
    @overload
    def forecast(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, exact: bool, mapping: str | None = None, parameters: str | Mapping[str, float] | None = None, **options: Unpack[ForecastKeywords]) -> AcceleratorForecast: ...
    @overload
    def forecast(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, exact: bool | None = None, mapping: str, parameters: str | Mapping[str, float] | None = None, **options: Unpack[ForecastKeywords]) -> AcceleratorForecast: ...
    @overload
    def forecast(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, exact: bool | None = None, mapping: str | None = None, parameters: str | Mapping[str, float], **options: Unpack[ForecastKeywords]) -> AcceleratorForecast: ...
    @overload
    def forecast(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, **options: Unpack[ForecastKeywords]) -> Forecast: ...
    def compare_gpus(self, model: ModelLike, gpus: GpuLike | Sequence[GpuLike] | None = None, *, inputs: Any = None, **options: Unpack[CompareGpusKeywords]) -> GpuComparison: ...
    def memory_timeline(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, **options: Unpack[MemoryTimelineKeywords]) -> MemoryTimeline: ...
    def power_timeline(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, **options: Unpack[PowerTimelineKeywords]) -> PowerTimeline: ...
    def step_operations(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, **options: Unpack[StepOperationsKeywords]) -> dict[str, Any]: ...
    def occupancy(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, **options: Unpack[OccupancyKeywords]) -> str: ...
    def compare(self, a: str, b: str, **options: Unpack[CompareKeywords]) -> Comparison: ...
    def kernel(self, op: str, gpu: GpuLike, **options: Unpack[KernelKeywords]) -> KernelAnswer: ...
    @overload
    def plan(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, prompt: int | str, **options: Unpack[PlanKeywords]) -> ServingPlan: ...
    @overload
    def plan(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, gpus: GpuLike | Sequence[GpuLike], **options: Unpack[PlanKeywords]) -> TrainingPlans: ...
    @overload
    def plan(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, **options: Unpack[PlanKeywords]) -> TrainingPlan: ...
    def evaluate(self, path: Path, gpu: str | None = None, **options: Unpack[EvaluateKeywords]) -> Evaluation | AcceleratorEvaluations | TuneEvaluations | SharingEvaluation | ServerEvaluation: ...
    def share(self, gpu: GpuLike, **options: Unpack[ShareKeywords]) -> ShareForecast: ...
    @overload
    def allocate(self, jobs: Path, *, pool: int | str | Sequence[int | str], arrivals: Path, **options: Unpack[AllocateKeywords]) -> ClusterSimulation: ...
    @overload
    def allocate(self, jobs: Path, *, pool: int | str | Sequence[int | str], **options: Unpack[AllocateKeywords]) -> AllocationForecast: ...
    def trace(self, trace: Path, gpu: GpuLike | None = None, **options: Unpack[TraceKeywords]) -> TraceReport: ...
    def trace_timeline(self, trace: Path, gpu: GpuLike | None = None, **options: Unpack[TraceTimelineKeywords]) -> dict[str, Any]: ...
    def calibrate_pairs(self, gpu: GpuLike, *, pairs: Path, jobs: Path, output_file: Path, **options: Unpack[CalibratePairsKeywords]) -> PairCalibration: ...

@overload
def forecast(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, prompt: int | str, trace: Path | None = None, **options: Unpack[ForecastKeywords]) -> GenerationForecast: ...
@overload
def forecast(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, prompt: int | str | None = None, trace: Path, **options: Unpack[ForecastKeywords]) -> GenerationForecast: ...
@overload
def forecast(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, exact: bool, mapping: str | None = None, parameters: str | Mapping[str, float] | None = None, **options: Unpack[ForecastKeywords]) -> AcceleratorForecast: ...
@overload
def forecast(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, exact: bool | None = None, mapping: str, parameters: str | Mapping[str, float] | None = None, **options: Unpack[ForecastKeywords]) -> AcceleratorForecast: ...
@overload
def forecast(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, exact: bool | None = None, mapping: str | None = None, parameters: str | Mapping[str, float], **options: Unpack[ForecastKeywords]) -> AcceleratorForecast: ...
@overload
def forecast(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[ForecastKeywords]) -> Forecast: ...
def compare_gpus(model: ModelLike, gpus: GpuLike | Sequence[GpuLike] | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[CompareGpusKeywords]) -> GpuComparison: ...
def memory_timeline(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[MemoryTimelineKeywords]) -> MemoryTimeline: ...
def power_timeline(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[PowerTimelineKeywords]) -> PowerTimeline: ...
def step_operations(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[StepOperationsKeywords]) -> dict[str, Any]: ...
def occupancy(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[OccupancyKeywords]) -> str: ...
def compare(a: str, b: str, *, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[CompareKeywords]) -> Comparison: ...
def kernel(op: str, gpu: GpuLike, *, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[KernelKeywords]) -> KernelAnswer: ...
def collective(kind: Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv", "expert_dispatch", "expert_combine"], *, cluster: Path, ranks: int, bytes: int, **options: Unpack[CollectiveKeywords]) -> Collective: ...
@overload
def plan(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, prompt: int | str, **options: Unpack[PlanKeywords]) -> ServingPlan: ...
@overload
def plan(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, gpus: GpuLike | Sequence[GpuLike], weights: Path | None = None, calibration: Path | None = None, **options: Unpack[PlanKeywords]) -> TrainingPlans: ...
@overload
def plan(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[PlanKeywords]) -> TrainingPlan: ...
def shard(tables: Path, *, cluster: Path, **options: Unpack[ShardKeywords]) -> Placement: ...
def evaluate(path: Path, gpu: str | None = None, *, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[EvaluateKeywords]) -> Evaluation | AcceleratorEvaluations | TuneEvaluations | SharingEvaluation | ServerEvaluation: ...
def train(*, data: Path | Sequence[Path], output_file: Path, **options: Unpack[TrainKeywords]) -> Training | CollectiveTraining: ...
def tune(problem: ModelLike | None = None, gpu: GpuLike | None = None, *, inputs: Any = None, **options: Unpack[TuneKeywords]) -> Tuning | ProductTuning: ...
def sweep(spec: Path, **options: Unpack[SweepKeywords]) -> Sweep: ...
def share(gpu: GpuLike, *, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[ShareKeywords]) -> ShareForecast: ...
@overload
def allocate(jobs: Path, *, pool: int | str | Sequence[int | str], arrivals: Path, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[AllocateKeywords]) -> ClusterSimulation: ...
@overload
def allocate(jobs: Path, *, pool: int | str | Sequence[int | str], weights: Path | None = None, calibration: Path | None = None, **options: Unpack[AllocateKeywords]) -> AllocationForecast: ...
def trace(trace: Path, gpu: GpuLike | None = None, *, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[TraceKeywords]) -> TraceReport: ...
def trace_timeline(trace: Path, gpu: GpuLike | None = None, *, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[TraceTimelineKeywords]) -> dict[str, Any]: ...
def calibrate(gpu: GpuLike, **options: Unpack[CalibrateKeywords]) -> Calibration: ...
def calibrate_pairs(gpu: GpuLike, *, pairs: Path, jobs: Path, output_file: Path, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[CalibratePairsKeywords]) -> PairCalibration: ...
def suggest_kernels(gpu: GpuLike, **options: Unpack[SuggestKernelsKeywords]) -> str: ...
def gpus(name: str | None = None, **options: Unpack[GpusKeywords]) -> list[GpuEntry]: ...
def clusters(name: str | None = None, **options: Unpack[ClustersKeywords]) -> list[ClusterEntry]: ...
def models(name: str | None = None, **options: Unpack[ModelsKeywords]) -> list[ModelEntry]: ...
def ops(name: str | None = None, **options: Unpack[OpsKeywords]) -> list[OpEntry]: ...
def data_file(kind: Literal["gpus", "clusters", "models"], name: str, **options: Unpack[DataFileKeywords]) -> str: ...
def doctor(**options: Unpack[DoctorKeywords]) -> Installation: ...
