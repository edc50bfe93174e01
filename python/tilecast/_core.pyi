"""Types of the compiled module. Attributes are read-only."""
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Union, overload

__version__: str

Path = Union[str, PathLike[str]]
ModelLike = Any
"""What tilecast.load_model takes: a name, a path, a config, a torch.nn.Module, a Model."""
GpuLike = Union[Path, Gpu, GpuEntry, Mapping[str, Any]]

class Record:
    """A part of a result."""
    def to_json(self) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...

class Estimate:
    """A time with its 80 % interval, in seconds."""
    seconds: float
    low_s: float
    high_s: float
    def __float__(self) -> float: ...

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
    kernels: list[Kernel]

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

def options(function: str = "forecast") -> Sequence[Option]: ...
def default_forecaster() -> Forecaster: ...
def load_model(name_or_path: str) -> Model: ...
def model_from_text(text: str, name: str) -> Model: ...
def load_gpu(gpu: GpuLike) -> Gpu: ...

# Results: made by tools/generate.sh, do not edit.

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

class Memory(Record):
    """Memory of one rank."""
    peak_bytes: int
    """the largest sum over time: the parts of at_peak, workspace and framework [bytes]"""
    at_peak: MemoryParts
    """what the peak holds"""
    peak_phase: str
    """phase of the peak"""
    peak_node: str
    """the operator that runs at the peak"""
    weights_bytes: int
    """parameters and buffers [bytes]"""
    gradients_bytes: int
    """of all parameters, without the buckets [bytes]"""
    gradient_buckets_bytes: int
    """DistributedDataParallel's buckets, copies of the gradients for their reduction: at_peak.gradients_bytes contains them [bytes]"""
    optimizer_bytes: int
    """optimizer states [bytes]"""
    activations_bytes: int
    """the largest sum of tensors that the forward and the backward pass compute, and the inputs [bytes]"""
    optimizer_temporaries_bytes: int
    """the largest sum of tensors that the optimizer step computes beside its states [bytes]"""
    workspace_bytes: int
    """workspace of cuBLAS [bytes]"""
    framework_bytes: int
    """context and code of the framework [bytes]"""
    stack: str
    """the software that workspace and framework are of"""
    device_bytes: int
    """memory of the device by its data sheet [bytes]"""
    usable_bytes: int
    """what programs see of the device's memory [bytes]"""
    margin_bytes: int
    """usable memory less peak; below 0 if it does not fit [bytes]"""
    fits: bool
    """whether the peak does, without fragmentation"""
    reserved_bytes: int | None
    """what the caching allocator takes at most, with workspace and framework, if the peak hardly fits [bytes]"""
    largest_batch: int | None
    """the largest batch that fits"""
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
    flops: int
    """work of one kernel [FLOP]"""
    bytes: int
    """memory traffic of one kernel [bytes]"""
    limit: str
    """what limits it"""
    tile: tuple[int, int] | None
    """rows and columns of the output that a block computes"""
    waves: float
    """rounds of blocks over the device"""
    utilization_ratio: float
    """the shortest time that the data sheet allows, divided by the forecast"""
    predictor: str
    """name of the cost model"""
    extrapolated: bool
    """outside the training range"""
    extrapolated_feature: str | None
    """the feature that is furthest outside the training range, or what was not measured; only if extrapolated"""

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
    weights_bytes: int
    """parameters and buffers [bytes]"""
    gradients_bytes: int
    """gradients of the parameters [bytes]"""
    optimizer_bytes: int
    """optimizer states [bytes]"""
    activations_bytes: int
    """at most, of all micro-batches in flight [bytes]"""
    peak_bytes: int
    """the largest sum over time [bytes]"""

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

class Forecast(_Forecast):
    """The forecast of one pass or training step."""
    schema_version: int
    """of this schema"""
    model: str
    """name of the model"""
    gpu: str
    """id of the GPU"""
    mode: str
    """inference is one forward pass; training is forward, backward and optimizer step"""
    batch: int
    """sequences over all ranks"""
    seq: int
    """length of a sequence [tokens]"""
    dtype: str
    """the dtype that was used, as in --dtype"""
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
    utilization_ratio: float
    """FLOPs / (latency x peak FLOP/s of the device for the dtype)"""
    memory: Memory
    """over several ranks: of the rank that needs most"""
    kernels: list[Kernel]
    """over several ranks: of one rank of each stage, over all micro-batches"""
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
    stages: list[Stage] | None
    """one rank of each pipeline stage"""
    rank_tables: list[RankTables] | None
    """the embedding tables of each rank of a recommendation model; other models have no such key"""
    options: dict[str, int | float | str]
    """the request with all defaults: values by the names of the command-line options (with _ for -), in their units; options without a value are omitted"""
    warnings: list[str]
    """sentences that readers of the numbers should know"""
    warning_codes: list[str]
    """code of each warning, in the order of warnings"""


class Forecaster:
    """Forecasts with one set of weights."""
    def __init__(self, weights: Path = "", calibration: Path = "") -> None: ...
    def forecast_many(self, table: Any, *, threads: int = 0, **options: Any) -> ForecastTable: ...
    @overload
    def forecast(
            self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None,
            predictor: Literal["learned", "roofline"] | None = None, clocks: float | str | None = None,
            images: int | None = None, image_size: int | None = None,
            mode: Literal["inference", "training"] | None = None, batch: int | None = None, seq: int | None = None,
            dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
            attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
            optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
            optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
            zero_grad: Literal["set-to-none", "zeros"] | None = None,
            loss: Literal["none", "memory", "full"] | None = None,
            checkpointing: Literal["none", "selective", "full"] | None = None, lora_rank: int | None = None,
            lora_targets: str | Sequence[str] | None = None, dim: str | Mapping[str, float] | None = None,
            skip_unsupported: bool | None = None,
            software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
            host_launch_us: float | None = None, cluster: str | None = None, nodes: int | None = None,
            tp: int | None = None, pp: int | None = None, dp: int | None = None, cp: int | None = None,
            ep: int | None = None, skew: int | None = None, microbatches: int | None = None,
            micro_batch_size: int | None = None,
            pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None = None,
            num_layers_per_virtual_pipeline_stage: int | None = None, pipeline_layers: str | None = None,
            sequence_parallel: bool | Literal["on", "off"] | None = None,
            zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None = None, bucket_cap_mb: float | None = None,
            overlap_grad_reduce: bool | Literal["on", "off"] | None = None,
            main_params_dtype: Literal["as-model", "fp32"] | None = None, slow_ranks: str | None = None,
            prompt: int | str, output: int | str | None = None,
            kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None = None,
            schedule: Literal["static", "continuous"] | None = None, rate: float | None = None,
            concurrency: int | None = None, trace: Path | None = None, requests: int | None = None,
            max_num_seqs: int | None = None, max_num_batched_tokens: int | None = None,
            gpu_memory_utilization: float | None = None, max_model_len: int | None = None,
            prefix_hit_rate: float | None = None, server_overhead_s: float | None = None, ttft_s: float | None = None,
            tpot_s: float | None = None, cuda_graphs: bool | Literal["on", "off"] | None = None,
            step_overhead_us: float | None = None,
            all2all_backend: Literal["allgather_reducescatter", "deepep"] | None = None, replicas: int | None = None,
            router: Literal["round-robin", "least-loaded"] | None = None, prefill_workers: int | None = None,
            prefill_tp: int | None = None, prefill_pp: int | None = None, prefill_dp: int | None = None,
            prefill_ep: int | None = None, kv_transfer: Literal["after-prefill", "by-layer"] | None = None,
            speculative_tokens: int | None = None, acceptance_rate: float | None = None, draft_model: str | None = None,
    ) -> LlmForecast: ...
    @overload
    def forecast(
            self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None,
            predictor: Literal["learned", "roofline"] | None = None, clocks: float | str | None = None,
            images: int | None = None, image_size: int | None = None,
            mode: Literal["inference", "training"] | None = None, batch: int | None = None, seq: int | None = None,
            dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
            attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
            optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
            optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
            zero_grad: Literal["set-to-none", "zeros"] | None = None,
            loss: Literal["none", "memory", "full"] | None = None,
            checkpointing: Literal["none", "selective", "full"] | None = None, lora_rank: int | None = None,
            lora_targets: str | Sequence[str] | None = None, dim: str | Mapping[str, float] | None = None,
            skip_unsupported: bool | None = None,
            software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
            host_launch_us: float | None = None, cluster: str | None = None, nodes: int | None = None,
            tp: int | None = None, pp: int | None = None, dp: int | None = None, cp: int | None = None,
            ep: int | None = None, skew: int | None = None, microbatches: int | None = None,
            micro_batch_size: int | None = None,
            pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None = None,
            num_layers_per_virtual_pipeline_stage: int | None = None, pipeline_layers: str | None = None,
            sequence_parallel: bool | Literal["on", "off"] | None = None,
            zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None = None, bucket_cap_mb: float | None = None,
            overlap_grad_reduce: bool | Literal["on", "off"] | None = None,
            main_params_dtype: Literal["as-model", "fp32"] | None = None, slow_ranks: str | None = None,
            prompt: int | str | None = None, output: int | str | None = None,
            kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None = None,
            schedule: Literal["static", "continuous"] | None = None, rate: float | None = None,
            concurrency: int | None = None, trace: Path, requests: int | None = None, max_num_seqs: int | None = None,
            max_num_batched_tokens: int | None = None, gpu_memory_utilization: float | None = None,
            max_model_len: int | None = None, prefix_hit_rate: float | None = None,
            server_overhead_s: float | None = None, ttft_s: float | None = None, tpot_s: float | None = None,
            cuda_graphs: bool | Literal["on", "off"] | None = None, step_overhead_us: float | None = None,
            all2all_backend: Literal["allgather_reducescatter", "deepep"] | None = None, replicas: int | None = None,
            router: Literal["round-robin", "least-loaded"] | None = None, prefill_workers: int | None = None,
            prefill_tp: int | None = None, prefill_pp: int | None = None, prefill_dp: int | None = None,
            prefill_ep: int | None = None, kv_transfer: Literal["after-prefill", "by-layer"] | None = None,
            speculative_tokens: int | None = None, acceptance_rate: float | None = None, draft_model: str | None = None,
    ) -> LlmForecast: ...
    @overload
    def forecast(
            self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None,
            predictor: Literal["learned", "roofline"] | None = None, clocks: float | str | None = None,
            images: int | None = None, image_size: int | None = None,
            mode: Literal["inference", "training"] | None = None, batch: int | None = None, seq: int | None = None,
            dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
            attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
            optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
            optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
            zero_grad: Literal["set-to-none", "zeros"] | None = None,
            loss: Literal["none", "memory", "full"] | None = None,
            checkpointing: Literal["none", "selective", "full"] | None = None, lora_rank: int | None = None,
            lora_targets: str | Sequence[str] | None = None, dim: str | Mapping[str, float] | None = None,
            skip_unsupported: bool | None = None,
            software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
            host_launch_us: float | None = None, cluster: str | None = None, nodes: int | None = None,
            tp: int | None = None, pp: int | None = None, dp: int | None = None, cp: int | None = None,
            ep: int | None = None, skew: int | None = None, microbatches: int | None = None,
            micro_batch_size: int | None = None,
            pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None = None,
            num_layers_per_virtual_pipeline_stage: int | None = None, pipeline_layers: str | None = None,
            sequence_parallel: bool | Literal["on", "off"] | None = None,
            zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None = None, bucket_cap_mb: float | None = None,
            overlap_grad_reduce: bool | Literal["on", "off"] | None = None,
            main_params_dtype: Literal["as-model", "fp32"] | None = None, slow_ranks: str | None = None,
            output: int | str | None = None, kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None = None,
            schedule: Literal["static", "continuous"] | None = None, rate: float | None = None,
            concurrency: int | None = None, requests: int | None = None, max_num_seqs: int | None = None,
            max_num_batched_tokens: int | None = None, gpu_memory_utilization: float | None = None,
            max_model_len: int | None = None, prefix_hit_rate: float | None = None,
            server_overhead_s: float | None = None, ttft_s: float | None = None, tpot_s: float | None = None,
            cuda_graphs: bool | Literal["on", "off"] | None = None, step_overhead_us: float | None = None,
            all2all_backend: Literal["allgather_reducescatter", "deepep"] | None = None, replicas: int | None = None,
            router: Literal["round-robin", "least-loaded"] | None = None, prefill_workers: int | None = None,
            prefill_tp: int | None = None, prefill_pp: int | None = None, prefill_dp: int | None = None,
            prefill_ep: int | None = None, kv_transfer: Literal["after-prefill", "by-layer"] | None = None,
            speculative_tokens: int | None = None, acceptance_rate: float | None = None,
            draft_model: str | None = None, exact: bool, mapping: str | None = None,
            parameters: str | Mapping[str, float] | None = None,
    ) -> AcceleratorForecast: ...
    @overload
    def forecast(
            self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None,
            predictor: Literal["learned", "roofline"] | None = None, clocks: float | str | None = None,
            images: int | None = None, image_size: int | None = None,
            mode: Literal["inference", "training"] | None = None, batch: int | None = None, seq: int | None = None,
            dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
            attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
            optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
            optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
            zero_grad: Literal["set-to-none", "zeros"] | None = None,
            loss: Literal["none", "memory", "full"] | None = None,
            checkpointing: Literal["none", "selective", "full"] | None = None, lora_rank: int | None = None,
            lora_targets: str | Sequence[str] | None = None, dim: str | Mapping[str, float] | None = None,
            skip_unsupported: bool | None = None,
            software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
            host_launch_us: float | None = None, cluster: str | None = None, nodes: int | None = None,
            tp: int | None = None, pp: int | None = None, dp: int | None = None, cp: int | None = None,
            ep: int | None = None, skew: int | None = None, microbatches: int | None = None,
            micro_batch_size: int | None = None,
            pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None = None,
            num_layers_per_virtual_pipeline_stage: int | None = None, pipeline_layers: str | None = None,
            sequence_parallel: bool | Literal["on", "off"] | None = None,
            zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None = None, bucket_cap_mb: float | None = None,
            overlap_grad_reduce: bool | Literal["on", "off"] | None = None,
            main_params_dtype: Literal["as-model", "fp32"] | None = None, slow_ranks: str | None = None,
            output: int | str | None = None, kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None = None,
            schedule: Literal["static", "continuous"] | None = None, rate: float | None = None,
            concurrency: int | None = None, requests: int | None = None, max_num_seqs: int | None = None,
            max_num_batched_tokens: int | None = None, gpu_memory_utilization: float | None = None,
            max_model_len: int | None = None, prefix_hit_rate: float | None = None,
            server_overhead_s: float | None = None, ttft_s: float | None = None, tpot_s: float | None = None,
            cuda_graphs: bool | Literal["on", "off"] | None = None, step_overhead_us: float | None = None,
            all2all_backend: Literal["allgather_reducescatter", "deepep"] | None = None, replicas: int | None = None,
            router: Literal["round-robin", "least-loaded"] | None = None, prefill_workers: int | None = None,
            prefill_tp: int | None = None, prefill_pp: int | None = None, prefill_dp: int | None = None,
            prefill_ep: int | None = None, kv_transfer: Literal["after-prefill", "by-layer"] | None = None,
            speculative_tokens: int | None = None, acceptance_rate: float | None = None,
            draft_model: str | None = None, exact: bool | None = None, mapping: str,
            parameters: str | Mapping[str, float] | None = None,
    ) -> AcceleratorForecast: ...
    @overload
    def forecast(
            self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None,
            predictor: Literal["learned", "roofline"] | None = None, clocks: float | str | None = None,
            images: int | None = None, image_size: int | None = None,
            mode: Literal["inference", "training"] | None = None, batch: int | None = None, seq: int | None = None,
            dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
            attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
            optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
            optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
            zero_grad: Literal["set-to-none", "zeros"] | None = None,
            loss: Literal["none", "memory", "full"] | None = None,
            checkpointing: Literal["none", "selective", "full"] | None = None, lora_rank: int | None = None,
            lora_targets: str | Sequence[str] | None = None, dim: str | Mapping[str, float] | None = None,
            skip_unsupported: bool | None = None,
            software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
            host_launch_us: float | None = None, cluster: str | None = None, nodes: int | None = None,
            tp: int | None = None, pp: int | None = None, dp: int | None = None, cp: int | None = None,
            ep: int | None = None, skew: int | None = None, microbatches: int | None = None,
            micro_batch_size: int | None = None,
            pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None = None,
            num_layers_per_virtual_pipeline_stage: int | None = None, pipeline_layers: str | None = None,
            sequence_parallel: bool | Literal["on", "off"] | None = None,
            zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None = None, bucket_cap_mb: float | None = None,
            overlap_grad_reduce: bool | Literal["on", "off"] | None = None,
            main_params_dtype: Literal["as-model", "fp32"] | None = None, slow_ranks: str | None = None,
            output: int | str | None = None, kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None = None,
            schedule: Literal["static", "continuous"] | None = None, rate: float | None = None,
            concurrency: int | None = None, requests: int | None = None, max_num_seqs: int | None = None,
            max_num_batched_tokens: int | None = None, gpu_memory_utilization: float | None = None,
            max_model_len: int | None = None, prefix_hit_rate: float | None = None,
            server_overhead_s: float | None = None, ttft_s: float | None = None, tpot_s: float | None = None,
            cuda_graphs: bool | Literal["on", "off"] | None = None, step_overhead_us: float | None = None,
            all2all_backend: Literal["allgather_reducescatter", "deepep"] | None = None, replicas: int | None = None,
            router: Literal["round-robin", "least-loaded"] | None = None, prefill_workers: int | None = None,
            prefill_tp: int | None = None, prefill_pp: int | None = None, prefill_dp: int | None = None,
            prefill_ep: int | None = None, kv_transfer: Literal["after-prefill", "by-layer"] | None = None,
            speculative_tokens: int | None = None, acceptance_rate: float | None = None,
            draft_model: str | None = None, exact: bool | None = None, mapping: str | None = None,
            parameters: str | Mapping[str, float],
    ) -> AcceleratorForecast: ...
    @overload
    def forecast(
            self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None,
            predictor: Literal["learned", "roofline"] | None = None, clocks: float | str | None = None,
            images: int | None = None, image_size: int | None = None,
            mode: Literal["inference", "training"] | None = None, batch: int | None = None, seq: int | None = None,
            dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
            attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
            optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
            optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
            zero_grad: Literal["set-to-none", "zeros"] | None = None,
            loss: Literal["none", "memory", "full"] | None = None,
            checkpointing: Literal["none", "selective", "full"] | None = None, lora_rank: int | None = None,
            lora_targets: str | Sequence[str] | None = None, dim: str | Mapping[str, float] | None = None,
            skip_unsupported: bool | None = None,
            software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
            host_launch_us: float | None = None, cluster: str | None = None, nodes: int | None = None,
            tp: int | None = None, pp: int | None = None, dp: int | None = None, cp: int | None = None,
            ep: int | None = None, skew: int | None = None, microbatches: int | None = None,
            micro_batch_size: int | None = None,
            pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None = None,
            num_layers_per_virtual_pipeline_stage: int | None = None, pipeline_layers: str | None = None,
            sequence_parallel: bool | Literal["on", "off"] | None = None,
            zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None = None, bucket_cap_mb: float | None = None,
            overlap_grad_reduce: bool | Literal["on", "off"] | None = None,
            main_params_dtype: Literal["as-model", "fp32"] | None = None, slow_ranks: str | None = None,
            output: int | str | None = None, kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None = None,
            schedule: Literal["static", "continuous"] | None = None, rate: float | None = None,
            concurrency: int | None = None, requests: int | None = None, max_num_seqs: int | None = None,
            max_num_batched_tokens: int | None = None, gpu_memory_utilization: float | None = None,
            max_model_len: int | None = None, prefix_hit_rate: float | None = None,
            server_overhead_s: float | None = None, ttft_s: float | None = None, tpot_s: float | None = None,
            cuda_graphs: bool | Literal["on", "off"] | None = None, step_overhead_us: float | None = None,
            all2all_backend: Literal["allgather_reducescatter", "deepep"] | None = None, replicas: int | None = None,
            router: Literal["round-robin", "least-loaded"] | None = None, prefill_workers: int | None = None,
            prefill_tp: int | None = None, prefill_pp: int | None = None, prefill_dp: int | None = None,
            prefill_ep: int | None = None, kv_transfer: Literal["after-prefill", "by-layer"] | None = None,
            speculative_tokens: int | None = None, acceptance_rate: float | None = None, draft_model: str | None = None,
    ) -> Forecast: ...
    def compare(
            self, model: ModelLike, gpus: GpuLike | Sequence[GpuLike] | None = None, *, inputs: Any = None,
            predictor: Literal["learned", "roofline"] | None = None, clocks: float | str | None = None,
            images: int | None = None, image_size: int | None = None,
            mode: Literal["inference", "training"] | None = None, batch: int | None = None, seq: int | None = None,
            dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
            attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
            optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
            optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
            zero_grad: Literal["set-to-none", "zeros"] | None = None,
            loss: Literal["none", "memory", "full"] | None = None,
            checkpointing: Literal["none", "selective", "full"] | None = None, lora_rank: int | None = None,
            lora_targets: str | Sequence[str] | None = None, dim: str | Mapping[str, float] | None = None,
            skip_unsupported: bool | None = None,
            software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
            host_launch_us: float | None = None, cluster: str | None = None, nodes: int | None = None,
            tp: int | None = None, pp: int | None = None, dp: int | None = None, cp: int | None = None,
            ep: int | None = None, skew: int | None = None, microbatches: int | None = None,
            micro_batch_size: int | None = None,
            pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None = None,
            num_layers_per_virtual_pipeline_stage: int | None = None, pipeline_layers: str | None = None,
            sequence_parallel: bool | Literal["on", "off"] | None = None,
            zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None = None, bucket_cap_mb: float | None = None,
            overlap_grad_reduce: bool | Literal["on", "off"] | None = None,
            main_params_dtype: Literal["as-model", "fp32"] | None = None, slow_ranks: str | None = None,
            prompt: int | str | None = None, output: int | str | None = None,
            kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None = None,
            schedule: Literal["static", "continuous"] | None = None, rate: float | None = None,
            concurrency: int | None = None, trace: Path | None = None, requests: int | None = None,
            max_num_seqs: int | None = None, max_num_batched_tokens: int | None = None,
            gpu_memory_utilization: float | None = None, max_model_len: int | None = None,
            prefix_hit_rate: float | None = None, server_overhead_s: float | None = None, ttft_s: float | None = None,
            tpot_s: float | None = None, cuda_graphs: bool | Literal["on", "off"] | None = None,
            step_overhead_us: float | None = None,
            all2all_backend: Literal["allgather_reducescatter", "deepep"] | None = None, replicas: int | None = None,
            router: Literal["round-robin", "least-loaded"] | None = None, prefill_workers: int | None = None,
            prefill_tp: int | None = None, prefill_pp: int | None = None, prefill_dp: int | None = None,
            prefill_ep: int | None = None, kv_transfer: Literal["after-prefill", "by-layer"] | None = None,
            speculative_tokens: int | None = None, acceptance_rate: float | None = None, draft_model: str | None = None,
    ) -> Any: ...
    def memory_timeline(
            self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None,
            predictor: Literal["learned", "roofline"] | None = None, clocks: float | str | None = None,
            images: int | None = None, image_size: int | None = None,
            mode: Literal["inference", "training"] | None = None, batch: int | None = None, seq: int | None = None,
            dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
            attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
            optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
            optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
            zero_grad: Literal["set-to-none", "zeros"] | None = None,
            loss: Literal["none", "memory", "full"] | None = None,
            checkpointing: Literal["none", "selective", "full"] | None = None, lora_rank: int | None = None,
            lora_targets: str | Sequence[str] | None = None, dim: str | Mapping[str, float] | None = None,
            skip_unsupported: bool | None = None,
            software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
            host_launch_us: float | None = None, cluster: str | None = None, nodes: int | None = None,
            tp: int | None = None, pp: int | None = None, dp: int | None = None, cp: int | None = None,
            ep: int | None = None, skew: int | None = None, microbatches: int | None = None,
            micro_batch_size: int | None = None,
            pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None = None,
            num_layers_per_virtual_pipeline_stage: int | None = None, pipeline_layers: str | None = None,
            sequence_parallel: bool | Literal["on", "off"] | None = None,
            zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None = None, bucket_cap_mb: float | None = None,
            overlap_grad_reduce: bool | Literal["on", "off"] | None = None,
            main_params_dtype: Literal["as-model", "fp32"] | None = None, slow_ranks: str | None = None,
            prompt: int | str | None = None, output: int | str | None = None,
            kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None = None,
            schedule: Literal["static", "continuous"] | None = None, rate: float | None = None,
            concurrency: int | None = None, trace: Path | None = None, requests: int | None = None,
            max_num_seqs: int | None = None, max_num_batched_tokens: int | None = None,
            gpu_memory_utilization: float | None = None, max_model_len: int | None = None,
            prefix_hit_rate: float | None = None, server_overhead_s: float | None = None, ttft_s: float | None = None,
            tpot_s: float | None = None, cuda_graphs: bool | Literal["on", "off"] | None = None,
            step_overhead_us: float | None = None,
            all2all_backend: Literal["allgather_reducescatter", "deepep"] | None = None, replicas: int | None = None,
            router: Literal["round-robin", "least-loaded"] | None = None, prefill_workers: int | None = None,
            prefill_tp: int | None = None, prefill_pp: int | None = None, prefill_dp: int | None = None,
            prefill_ep: int | None = None, kv_transfer: Literal["after-prefill", "by-layer"] | None = None,
            speculative_tokens: int | None = None, acceptance_rate: float | None = None, draft_model: str | None = None,
    ) -> Any: ...
    def step_operations(
            self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None,
            predictor: Literal["learned", "roofline"] | None = None, clocks: float | str | None = None,
            images: int | None = None, image_size: int | None = None,
            mode: Literal["inference", "training"] | None = None, batch: int | None = None, seq: int | None = None,
            dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
            attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
            optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
            optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
            zero_grad: Literal["set-to-none", "zeros"] | None = None,
            loss: Literal["none", "memory", "full"] | None = None,
            checkpointing: Literal["none", "selective", "full"] | None = None, lora_rank: int | None = None,
            lora_targets: str | Sequence[str] | None = None, dim: str | Mapping[str, float] | None = None,
            skip_unsupported: bool | None = None,
            software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
            host_launch_us: float | None = None, cluster: str | None = None, nodes: int | None = None,
            tp: int | None = None, pp: int | None = None, dp: int | None = None, cp: int | None = None,
            ep: int | None = None, skew: int | None = None, microbatches: int | None = None,
            micro_batch_size: int | None = None,
            pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None = None,
            num_layers_per_virtual_pipeline_stage: int | None = None, pipeline_layers: str | None = None,
            sequence_parallel: bool | Literal["on", "off"] | None = None,
            zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None = None, bucket_cap_mb: float | None = None,
            overlap_grad_reduce: bool | Literal["on", "off"] | None = None,
            main_params_dtype: Literal["as-model", "fp32"] | None = None, slow_ranks: str | None = None,
            prompt: int | str | None = None, output: int | str | None = None,
            kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None = None,
            schedule: Literal["static", "continuous"] | None = None, rate: float | None = None,
            concurrency: int | None = None, trace: Path | None = None, requests: int | None = None,
            max_num_seqs: int | None = None, max_num_batched_tokens: int | None = None,
            gpu_memory_utilization: float | None = None, max_model_len: int | None = None,
            prefix_hit_rate: float | None = None, server_overhead_s: float | None = None, ttft_s: float | None = None,
            tpot_s: float | None = None, cuda_graphs: bool | Literal["on", "off"] | None = None,
            step_overhead_us: float | None = None,
            all2all_backend: Literal["allgather_reducescatter", "deepep"] | None = None, replicas: int | None = None,
            router: Literal["round-robin", "least-loaded"] | None = None, prefill_workers: int | None = None,
            prefill_tp: int | None = None, prefill_pp: int | None = None, prefill_dp: int | None = None,
            prefill_ep: int | None = None, kv_transfer: Literal["after-prefill", "by-layer"] | None = None,
            speculative_tokens: int | None = None, acceptance_rate: float | None = None, draft_model: str | None = None,
    ) -> dict[str, Any]: ...
    def occupancy(
            self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None,
            predictor: Literal["learned", "roofline"] | None = None, clocks: float | str | None = None,
            images: int | None = None, image_size: int | None = None,
            mode: Literal["inference", "training"] | None = None, batch: int | None = None, seq: int | None = None,
            dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
            attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
            optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
            optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
            zero_grad: Literal["set-to-none", "zeros"] | None = None,
            loss: Literal["none", "memory", "full"] | None = None,
            checkpointing: Literal["none", "selective", "full"] | None = None, lora_rank: int | None = None,
            lora_targets: str | Sequence[str] | None = None, dim: str | Mapping[str, float] | None = None,
            skip_unsupported: bool | None = None,
            software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
            host_launch_us: float | None = None, cluster: str | None = None, nodes: int | None = None,
            tp: int | None = None, pp: int | None = None, dp: int | None = None, cp: int | None = None,
            ep: int | None = None, skew: int | None = None, microbatches: int | None = None,
            micro_batch_size: int | None = None,
            pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None = None,
            num_layers_per_virtual_pipeline_stage: int | None = None, pipeline_layers: str | None = None,
            sequence_parallel: bool | Literal["on", "off"] | None = None,
            zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None = None, bucket_cap_mb: float | None = None,
            overlap_grad_reduce: bool | Literal["on", "off"] | None = None,
            main_params_dtype: Literal["as-model", "fp32"] | None = None, slow_ranks: str | None = None,
            prompt: int | str | None = None, output: int | str | None = None,
            kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None = None,
            schedule: Literal["static", "continuous"] | None = None, rate: float | None = None,
            concurrency: int | None = None, trace: Path | None = None, requests: int | None = None,
            max_num_seqs: int | None = None, max_num_batched_tokens: int | None = None,
            gpu_memory_utilization: float | None = None, max_model_len: int | None = None,
            prefix_hit_rate: float | None = None, server_overhead_s: float | None = None, ttft_s: float | None = None,
            tpot_s: float | None = None, cuda_graphs: bool | Literal["on", "off"] | None = None,
            step_overhead_us: float | None = None,
            all2all_backend: Literal["allgather_reducescatter", "deepep"] | None = None, replicas: int | None = None,
            router: Literal["round-robin", "least-loaded"] | None = None, prefill_workers: int | None = None,
            prefill_tp: int | None = None, prefill_pp: int | None = None, prefill_dp: int | None = None,
            prefill_ep: int | None = None, kv_transfer: Literal["after-prefill", "by-layer"] | None = None,
            speculative_tokens: int | None = None, acceptance_rate: float | None = None,
            draft_model: str | None = None, exact: bool | None = None, mapping: str | None = None,
            parameters: str | Mapping[str, float] | None = None,
    ) -> str: ...
    def kernel(
            self, op: str, gpu: GpuLike, *,
            dtype: Literal["fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"] | None = None,
            software: Literal["pytorch", "vllm", "sglang", "trtllm", "rocblas", "pipeweave"] | None = None,
            warm: bool | None = None, predictor: Literal["learned", "roofline"] | None = None,
            clocks: float | str | None = None, batch: int | None = None, m: int | None = None, n: int | None = None,
            k: int | None = None,
            scheme: Literal["fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
            trans_a: bool | None = None, trans_b: bool | None = None, queries: int | None = None,
            keys: int | None = None, heads: int | None = None, kv_heads: int | None = None,
            head_dim: int | None = None, v_head_dim: int | None = None, window: int | None = None,
            causal: bool | None = None, kv_dtype: Literal["fp32", "bf16", "fp16", "fp8", "int8"] | None = None,
            latent: bool | None = None, tokens: int | None = None, width: int | None = None,
            state_dim: int | None = None, groups: int | None = None, delta: bool | None = None,
            cached: bool | None = None, channels: int | None = None, ffn_dim: int | None = None,
            hidden_dim: int | None = None, num_experts: int | None = None, top_k: int | None = None,
            ranks: int | None = None, skew: int | None = None, gated: int | None = None, bags: int | None = None,
            pooling: int | None = None, dim: int | None = None, table_rows: int | None = None,
            reuse: str | None = None, rows: int | None = None, columns: int | None = None,
            in_channels: int | None = None, out_channels: int | None = None, height: int | None = None,
            window_height: int | None = None, window_width: int | None = None, stride: int | None = None,
            padding: int | None = None, channels_last: bool | None = None, more_columns: int | None = None,
            selected: int | None = None, depth: int | None = None, dilation: int | None = None,
            transposed: bool | None = None, steps: int | None = None, in_features: int | None = None,
            gates: int | None = None, directions: int | None = None, tables: int | None = None,
            skew_percent: int | None = None,
    ) -> Any: ...
    @overload
    def plan(
            self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, cluster: str | None = None,
            nodes: int | None = None, clocks: float | str | None = None,
            price_per_gpu_hour: float | str | Mapping[str, float] | None = None, full_search: bool | None = None,
            tp: int | Sequence[int] | None = None, pp: int | Sequence[int] | None = None,
            ep: int | Sequence[int] | None = None, dtype: int | str | Sequence[int | str] | None = None,
            batch: int | None = None, seq: int | None = None, attention: Literal["eager", "flash"] | None = None,
            fusion: Literal["none", "pointwise"] | None = None,
            optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
            optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
            loss: Literal["none", "memory", "full"] | None = None,
            main_params_dtype: Literal["as-model", "fp32"] | None = None,
            overlap_grad_reduce: bool | Literal["on", "off"] | None = None, bucket_cap_mb: float | None = None,
            lora_rank: int | None = None, lora_targets: str | Sequence[str] | None = None,
            predictor: Literal["learned", "roofline"] | None = None, host_launch_us: float | None = None,
            objective: Literal["time", "cost", "memory"] | None = None, top: int | None = None,
            cp: int | Sequence[int] | None = None, micro_batch_size: int | Sequence[int] | None = None,
            pipeline_schedule: int | str | Sequence[int | str] | None = None,
            virtual_stages: int | Sequence[int] | None = None, zero: int | str | Sequence[int | str] | None = None,
            checkpointing: int | str | Sequence[int | str] | None = None,
            sequence_parallel: int | str | Sequence[int | str] | None = None, num_gpus: int | None = None,
            prompt: int | str, output: int | str | None = None,
            software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None, max_num_seqs: int | None = None,
            max_num_batched_tokens: int | None = None, gpu_memory_utilization: float | None = None,
            max_model_len: int | None = None, prefix_hit_rate: float | None = None,
            server_overhead_s: float | None = None, ttft_s: float | None = None, tpot_s: float | None = None,
            cuda_graphs: bool | Literal["on", "off"] | None = None, skew: int | None = None,
            step_overhead_us: float | None = None, percentile: Literal["mean", "median", "p99"] | None = None,
            dp: int | Sequence[int] | None = None, prefill_workers: int | Sequence[int] | None = None,
            concurrency: int | Sequence[int] | None = None, kv_dtype: int | str | Sequence[int | str] | None = None,
    ) -> Any: ...
    @overload
    def plan(
            self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None,
            gpus: GpuLike | Sequence[GpuLike], cluster: str | None = None, nodes: int | None = None,
            clocks: float | str | None = None, price_per_gpu_hour: float | str | Mapping[str, float] | None = None,
            full_search: bool | None = None, tp: int | Sequence[int] | None = None,
            pp: int | Sequence[int] | None = None, ep: int | Sequence[int] | None = None,
            dtype: int | str | Sequence[int | str] | None = None, batch: int | None = None, seq: int | None = None,
            attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
            optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
            optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
            loss: Literal["none", "memory", "full"] | None = None,
            main_params_dtype: Literal["as-model", "fp32"] | None = None,
            overlap_grad_reduce: bool | Literal["on", "off"] | None = None, bucket_cap_mb: float | None = None,
            lora_rank: int | None = None, lora_targets: str | Sequence[str] | None = None,
            predictor: Literal["learned", "roofline"] | None = None, host_launch_us: float | None = None,
            objective: Literal["time", "cost", "memory"] | None = None, top: int | None = None,
            cp: int | Sequence[int] | None = None, micro_batch_size: int | Sequence[int] | None = None,
            pipeline_schedule: int | str | Sequence[int | str] | None = None,
            virtual_stages: int | Sequence[int] | None = None, zero: int | str | Sequence[int | str] | None = None,
            checkpointing: int | str | Sequence[int | str] | None = None,
            sequence_parallel: int | str | Sequence[int | str] | None = None, num_gpus: int | None = None,
            output: int | str | None = None, software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
            max_num_seqs: int | None = None, max_num_batched_tokens: int | None = None,
            gpu_memory_utilization: float | None = None, max_model_len: int | None = None,
            prefix_hit_rate: float | None = None, server_overhead_s: float | None = None, ttft_s: float | None = None,
            tpot_s: float | None = None, cuda_graphs: bool | Literal["on", "off"] | None = None,
            skew: int | None = None, step_overhead_us: float | None = None,
            percentile: Literal["mean", "median", "p99"] | None = None, dp: int | Sequence[int] | None = None,
            prefill_workers: int | Sequence[int] | None = None, concurrency: int | Sequence[int] | None = None,
            kv_dtype: int | str | Sequence[int | str] | None = None,
    ) -> Any: ...
    @overload
    def plan(
            self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, cluster: str | None = None,
            nodes: int | None = None, clocks: float | str | None = None,
            price_per_gpu_hour: float | str | Mapping[str, float] | None = None, full_search: bool | None = None,
            tp: int | Sequence[int] | None = None, pp: int | Sequence[int] | None = None,
            ep: int | Sequence[int] | None = None, dtype: int | str | Sequence[int | str] | None = None,
            batch: int | None = None, seq: int | None = None, attention: Literal["eager", "flash"] | None = None,
            fusion: Literal["none", "pointwise"] | None = None,
            optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
            optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
            loss: Literal["none", "memory", "full"] | None = None,
            main_params_dtype: Literal["as-model", "fp32"] | None = None,
            overlap_grad_reduce: bool | Literal["on", "off"] | None = None, bucket_cap_mb: float | None = None,
            lora_rank: int | None = None, lora_targets: str | Sequence[str] | None = None,
            predictor: Literal["learned", "roofline"] | None = None, host_launch_us: float | None = None,
            objective: Literal["time", "cost", "memory"] | None = None, top: int | None = None,
            cp: int | Sequence[int] | None = None, micro_batch_size: int | Sequence[int] | None = None,
            pipeline_schedule: int | str | Sequence[int | str] | None = None,
            virtual_stages: int | Sequence[int] | None = None, zero: int | str | Sequence[int | str] | None = None,
            checkpointing: int | str | Sequence[int | str] | None = None,
            sequence_parallel: int | str | Sequence[int | str] | None = None, num_gpus: int | None = None,
            output: int | str | None = None, software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
            max_num_seqs: int | None = None, max_num_batched_tokens: int | None = None,
            gpu_memory_utilization: float | None = None, max_model_len: int | None = None,
            prefix_hit_rate: float | None = None, server_overhead_s: float | None = None, ttft_s: float | None = None,
            tpot_s: float | None = None, cuda_graphs: bool | Literal["on", "off"] | None = None,
            skew: int | None = None, step_overhead_us: float | None = None,
            percentile: Literal["mean", "median", "p99"] | None = None, dp: int | Sequence[int] | None = None,
            prefill_workers: int | Sequence[int] | None = None, concurrency: int | Sequence[int] | None = None,
            kv_dtype: int | str | Sequence[int | str] | None = None,
    ) -> Any: ...
    def evaluate(
            self, path: Path, gpu: str | None = None, *, predictor: Literal["learned", "roofline"] | None = None,
    ) -> Any: ...

@overload
def forecast(
        model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None,
        predictor: Literal["learned", "roofline"] | None = None, clocks: float | str | None = None,
        images: int | None = None, image_size: int | None = None, weights: Path | None = None,
        calibration: Path | None = None, mode: Literal["inference", "training"] | None = None,
        batch: int | None = None, seq: int | None = None,
        dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
        attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
        optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
        optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
        zero_grad: Literal["set-to-none", "zeros"] | None = None,
        loss: Literal["none", "memory", "full"] | None = None,
        checkpointing: Literal["none", "selective", "full"] | None = None, lora_rank: int | None = None,
        lora_targets: str | Sequence[str] | None = None, dim: str | Mapping[str, float] | None = None,
        skip_unsupported: bool | None = None, software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
        host_launch_us: float | None = None, cluster: str | None = None, nodes: int | None = None,
        tp: int | None = None, pp: int | None = None, dp: int | None = None, cp: int | None = None,
        ep: int | None = None, skew: int | None = None, microbatches: int | None = None,
        micro_batch_size: int | None = None, pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None = None,
        num_layers_per_virtual_pipeline_stage: int | None = None, pipeline_layers: str | None = None,
        sequence_parallel: bool | Literal["on", "off"] | None = None,
        zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None = None, bucket_cap_mb: float | None = None,
        overlap_grad_reduce: bool | Literal["on", "off"] | None = None,
        main_params_dtype: Literal["as-model", "fp32"] | None = None, slow_ranks: str | None = None, prompt: int | str,
        output: int | str | None = None, kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None = None,
        schedule: Literal["static", "continuous"] | None = None, rate: float | None = None,
        concurrency: int | None = None, trace: Path | None = None, requests: int | None = None,
        max_num_seqs: int | None = None, max_num_batched_tokens: int | None = None,
        gpu_memory_utilization: float | None = None, max_model_len: int | None = None,
        prefix_hit_rate: float | None = None, server_overhead_s: float | None = None, ttft_s: float | None = None,
        tpot_s: float | None = None, cuda_graphs: bool | Literal["on", "off"] | None = None,
        step_overhead_us: float | None = None,
        all2all_backend: Literal["allgather_reducescatter", "deepep"] | None = None, replicas: int | None = None,
        router: Literal["round-robin", "least-loaded"] | None = None, prefill_workers: int | None = None,
        prefill_tp: int | None = None, prefill_pp: int | None = None, prefill_dp: int | None = None,
        prefill_ep: int | None = None, kv_transfer: Literal["after-prefill", "by-layer"] | None = None,
        speculative_tokens: int | None = None, acceptance_rate: float | None = None, draft_model: str | None = None,
) -> LlmForecast: ...
@overload
def forecast(
        model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None,
        predictor: Literal["learned", "roofline"] | None = None, clocks: float | str | None = None,
        images: int | None = None, image_size: int | None = None, weights: Path | None = None,
        calibration: Path | None = None, mode: Literal["inference", "training"] | None = None,
        batch: int | None = None, seq: int | None = None,
        dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
        attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
        optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
        optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
        zero_grad: Literal["set-to-none", "zeros"] | None = None,
        loss: Literal["none", "memory", "full"] | None = None,
        checkpointing: Literal["none", "selective", "full"] | None = None, lora_rank: int | None = None,
        lora_targets: str | Sequence[str] | None = None, dim: str | Mapping[str, float] | None = None,
        skip_unsupported: bool | None = None, software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
        host_launch_us: float | None = None, cluster: str | None = None, nodes: int | None = None,
        tp: int | None = None, pp: int | None = None, dp: int | None = None, cp: int | None = None,
        ep: int | None = None, skew: int | None = None, microbatches: int | None = None,
        micro_batch_size: int | None = None, pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None = None,
        num_layers_per_virtual_pipeline_stage: int | None = None, pipeline_layers: str | None = None,
        sequence_parallel: bool | Literal["on", "off"] | None = None,
        zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None = None, bucket_cap_mb: float | None = None,
        overlap_grad_reduce: bool | Literal["on", "off"] | None = None,
        main_params_dtype: Literal["as-model", "fp32"] | None = None, slow_ranks: str | None = None,
        prompt: int | str | None = None, output: int | str | None = None,
        kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None = None,
        schedule: Literal["static", "continuous"] | None = None, rate: float | None = None,
        concurrency: int | None = None, trace: Path, requests: int | None = None, max_num_seqs: int | None = None,
        max_num_batched_tokens: int | None = None, gpu_memory_utilization: float | None = None,
        max_model_len: int | None = None, prefix_hit_rate: float | None = None, server_overhead_s: float | None = None,
        ttft_s: float | None = None, tpot_s: float | None = None,
        cuda_graphs: bool | Literal["on", "off"] | None = None, step_overhead_us: float | None = None,
        all2all_backend: Literal["allgather_reducescatter", "deepep"] | None = None, replicas: int | None = None,
        router: Literal["round-robin", "least-loaded"] | None = None, prefill_workers: int | None = None,
        prefill_tp: int | None = None, prefill_pp: int | None = None, prefill_dp: int | None = None,
        prefill_ep: int | None = None, kv_transfer: Literal["after-prefill", "by-layer"] | None = None,
        speculative_tokens: int | None = None, acceptance_rate: float | None = None, draft_model: str | None = None,
) -> LlmForecast: ...
@overload
def forecast(
        model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None,
        predictor: Literal["learned", "roofline"] | None = None, clocks: float | str | None = None,
        images: int | None = None, image_size: int | None = None, weights: Path | None = None,
        calibration: Path | None = None, mode: Literal["inference", "training"] | None = None,
        batch: int | None = None, seq: int | None = None,
        dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
        attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
        optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
        optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
        zero_grad: Literal["set-to-none", "zeros"] | None = None,
        loss: Literal["none", "memory", "full"] | None = None,
        checkpointing: Literal["none", "selective", "full"] | None = None, lora_rank: int | None = None,
        lora_targets: str | Sequence[str] | None = None, dim: str | Mapping[str, float] | None = None,
        skip_unsupported: bool | None = None, software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
        host_launch_us: float | None = None, cluster: str | None = None, nodes: int | None = None,
        tp: int | None = None, pp: int | None = None, dp: int | None = None, cp: int | None = None,
        ep: int | None = None, skew: int | None = None, microbatches: int | None = None,
        micro_batch_size: int | None = None, pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None = None,
        num_layers_per_virtual_pipeline_stage: int | None = None, pipeline_layers: str | None = None,
        sequence_parallel: bool | Literal["on", "off"] | None = None,
        zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None = None, bucket_cap_mb: float | None = None,
        overlap_grad_reduce: bool | Literal["on", "off"] | None = None,
        main_params_dtype: Literal["as-model", "fp32"] | None = None, slow_ranks: str | None = None,
        output: int | str | None = None, kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None = None,
        schedule: Literal["static", "continuous"] | None = None, rate: float | None = None,
        concurrency: int | None = None, requests: int | None = None, max_num_seqs: int | None = None,
        max_num_batched_tokens: int | None = None, gpu_memory_utilization: float | None = None,
        max_model_len: int | None = None, prefix_hit_rate: float | None = None, server_overhead_s: float | None = None,
        ttft_s: float | None = None, tpot_s: float | None = None,
        cuda_graphs: bool | Literal["on", "off"] | None = None, step_overhead_us: float | None = None,
        all2all_backend: Literal["allgather_reducescatter", "deepep"] | None = None, replicas: int | None = None,
        router: Literal["round-robin", "least-loaded"] | None = None, prefill_workers: int | None = None,
        prefill_tp: int | None = None, prefill_pp: int | None = None, prefill_dp: int | None = None,
        prefill_ep: int | None = None, kv_transfer: Literal["after-prefill", "by-layer"] | None = None,
        speculative_tokens: int | None = None, acceptance_rate: float | None = None, draft_model: str | None = None,
        exact: bool, mapping: str | None = None, parameters: str | Mapping[str, float] | None = None,
) -> AcceleratorForecast: ...
@overload
def forecast(
        model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None,
        predictor: Literal["learned", "roofline"] | None = None, clocks: float | str | None = None,
        images: int | None = None, image_size: int | None = None, weights: Path | None = None,
        calibration: Path | None = None, mode: Literal["inference", "training"] | None = None,
        batch: int | None = None, seq: int | None = None,
        dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
        attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
        optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
        optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
        zero_grad: Literal["set-to-none", "zeros"] | None = None,
        loss: Literal["none", "memory", "full"] | None = None,
        checkpointing: Literal["none", "selective", "full"] | None = None, lora_rank: int | None = None,
        lora_targets: str | Sequence[str] | None = None, dim: str | Mapping[str, float] | None = None,
        skip_unsupported: bool | None = None, software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
        host_launch_us: float | None = None, cluster: str | None = None, nodes: int | None = None,
        tp: int | None = None, pp: int | None = None, dp: int | None = None, cp: int | None = None,
        ep: int | None = None, skew: int | None = None, microbatches: int | None = None,
        micro_batch_size: int | None = None, pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None = None,
        num_layers_per_virtual_pipeline_stage: int | None = None, pipeline_layers: str | None = None,
        sequence_parallel: bool | Literal["on", "off"] | None = None,
        zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None = None, bucket_cap_mb: float | None = None,
        overlap_grad_reduce: bool | Literal["on", "off"] | None = None,
        main_params_dtype: Literal["as-model", "fp32"] | None = None, slow_ranks: str | None = None,
        output: int | str | None = None, kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None = None,
        schedule: Literal["static", "continuous"] | None = None, rate: float | None = None,
        concurrency: int | None = None, requests: int | None = None, max_num_seqs: int | None = None,
        max_num_batched_tokens: int | None = None, gpu_memory_utilization: float | None = None,
        max_model_len: int | None = None, prefix_hit_rate: float | None = None, server_overhead_s: float | None = None,
        ttft_s: float | None = None, tpot_s: float | None = None,
        cuda_graphs: bool | Literal["on", "off"] | None = None, step_overhead_us: float | None = None,
        all2all_backend: Literal["allgather_reducescatter", "deepep"] | None = None, replicas: int | None = None,
        router: Literal["round-robin", "least-loaded"] | None = None, prefill_workers: int | None = None,
        prefill_tp: int | None = None, prefill_pp: int | None = None, prefill_dp: int | None = None,
        prefill_ep: int | None = None, kv_transfer: Literal["after-prefill", "by-layer"] | None = None,
        speculative_tokens: int | None = None, acceptance_rate: float | None = None, draft_model: str | None = None,
        exact: bool | None = None, mapping: str, parameters: str | Mapping[str, float] | None = None,
) -> AcceleratorForecast: ...
@overload
def forecast(
        model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None,
        predictor: Literal["learned", "roofline"] | None = None, clocks: float | str | None = None,
        images: int | None = None, image_size: int | None = None, weights: Path | None = None,
        calibration: Path | None = None, mode: Literal["inference", "training"] | None = None,
        batch: int | None = None, seq: int | None = None,
        dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
        attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
        optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
        optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
        zero_grad: Literal["set-to-none", "zeros"] | None = None,
        loss: Literal["none", "memory", "full"] | None = None,
        checkpointing: Literal["none", "selective", "full"] | None = None, lora_rank: int | None = None,
        lora_targets: str | Sequence[str] | None = None, dim: str | Mapping[str, float] | None = None,
        skip_unsupported: bool | None = None, software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
        host_launch_us: float | None = None, cluster: str | None = None, nodes: int | None = None,
        tp: int | None = None, pp: int | None = None, dp: int | None = None, cp: int | None = None,
        ep: int | None = None, skew: int | None = None, microbatches: int | None = None,
        micro_batch_size: int | None = None, pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None = None,
        num_layers_per_virtual_pipeline_stage: int | None = None, pipeline_layers: str | None = None,
        sequence_parallel: bool | Literal["on", "off"] | None = None,
        zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None = None, bucket_cap_mb: float | None = None,
        overlap_grad_reduce: bool | Literal["on", "off"] | None = None,
        main_params_dtype: Literal["as-model", "fp32"] | None = None, slow_ranks: str | None = None,
        output: int | str | None = None, kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None = None,
        schedule: Literal["static", "continuous"] | None = None, rate: float | None = None,
        concurrency: int | None = None, requests: int | None = None, max_num_seqs: int | None = None,
        max_num_batched_tokens: int | None = None, gpu_memory_utilization: float | None = None,
        max_model_len: int | None = None, prefix_hit_rate: float | None = None, server_overhead_s: float | None = None,
        ttft_s: float | None = None, tpot_s: float | None = None,
        cuda_graphs: bool | Literal["on", "off"] | None = None, step_overhead_us: float | None = None,
        all2all_backend: Literal["allgather_reducescatter", "deepep"] | None = None, replicas: int | None = None,
        router: Literal["round-robin", "least-loaded"] | None = None, prefill_workers: int | None = None,
        prefill_tp: int | None = None, prefill_pp: int | None = None, prefill_dp: int | None = None,
        prefill_ep: int | None = None, kv_transfer: Literal["after-prefill", "by-layer"] | None = None,
        speculative_tokens: int | None = None, acceptance_rate: float | None = None, draft_model: str | None = None,
        exact: bool | None = None, mapping: str | None = None, parameters: str | Mapping[str, float],
) -> AcceleratorForecast: ...
@overload
def forecast(
        model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None,
        predictor: Literal["learned", "roofline"] | None = None, clocks: float | str | None = None,
        images: int | None = None, image_size: int | None = None, weights: Path | None = None,
        calibration: Path | None = None, mode: Literal["inference", "training"] | None = None,
        batch: int | None = None, seq: int | None = None,
        dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
        attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
        optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
        optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
        zero_grad: Literal["set-to-none", "zeros"] | None = None,
        loss: Literal["none", "memory", "full"] | None = None,
        checkpointing: Literal["none", "selective", "full"] | None = None, lora_rank: int | None = None,
        lora_targets: str | Sequence[str] | None = None, dim: str | Mapping[str, float] | None = None,
        skip_unsupported: bool | None = None, software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
        host_launch_us: float | None = None, cluster: str | None = None, nodes: int | None = None,
        tp: int | None = None, pp: int | None = None, dp: int | None = None, cp: int | None = None,
        ep: int | None = None, skew: int | None = None, microbatches: int | None = None,
        micro_batch_size: int | None = None, pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None = None,
        num_layers_per_virtual_pipeline_stage: int | None = None, pipeline_layers: str | None = None,
        sequence_parallel: bool | Literal["on", "off"] | None = None,
        zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None = None, bucket_cap_mb: float | None = None,
        overlap_grad_reduce: bool | Literal["on", "off"] | None = None,
        main_params_dtype: Literal["as-model", "fp32"] | None = None, slow_ranks: str | None = None,
        output: int | str | None = None, kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None = None,
        schedule: Literal["static", "continuous"] | None = None, rate: float | None = None,
        concurrency: int | None = None, requests: int | None = None, max_num_seqs: int | None = None,
        max_num_batched_tokens: int | None = None, gpu_memory_utilization: float | None = None,
        max_model_len: int | None = None, prefix_hit_rate: float | None = None, server_overhead_s: float | None = None,
        ttft_s: float | None = None, tpot_s: float | None = None,
        cuda_graphs: bool | Literal["on", "off"] | None = None, step_overhead_us: float | None = None,
        all2all_backend: Literal["allgather_reducescatter", "deepep"] | None = None, replicas: int | None = None,
        router: Literal["round-robin", "least-loaded"] | None = None, prefill_workers: int | None = None,
        prefill_tp: int | None = None, prefill_pp: int | None = None, prefill_dp: int | None = None,
        prefill_ep: int | None = None, kv_transfer: Literal["after-prefill", "by-layer"] | None = None,
        speculative_tokens: int | None = None, acceptance_rate: float | None = None, draft_model: str | None = None,
) -> Forecast: ...
def compare(
        model: ModelLike, gpus: GpuLike | Sequence[GpuLike] | None = None, *, inputs: Any = None,
        predictor: Literal["learned", "roofline"] | None = None, clocks: float | str | None = None,
        images: int | None = None, image_size: int | None = None, weights: Path | None = None,
        calibration: Path | None = None, mode: Literal["inference", "training"] | None = None,
        batch: int | None = None, seq: int | None = None,
        dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
        attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
        optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
        optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
        zero_grad: Literal["set-to-none", "zeros"] | None = None,
        loss: Literal["none", "memory", "full"] | None = None,
        checkpointing: Literal["none", "selective", "full"] | None = None, lora_rank: int | None = None,
        lora_targets: str | Sequence[str] | None = None, dim: str | Mapping[str, float] | None = None,
        skip_unsupported: bool | None = None, software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
        host_launch_us: float | None = None, cluster: str | None = None, nodes: int | None = None,
        tp: int | None = None, pp: int | None = None, dp: int | None = None, cp: int | None = None,
        ep: int | None = None, skew: int | None = None, microbatches: int | None = None,
        micro_batch_size: int | None = None, pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None = None,
        num_layers_per_virtual_pipeline_stage: int | None = None, pipeline_layers: str | None = None,
        sequence_parallel: bool | Literal["on", "off"] | None = None,
        zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None = None, bucket_cap_mb: float | None = None,
        overlap_grad_reduce: bool | Literal["on", "off"] | None = None,
        main_params_dtype: Literal["as-model", "fp32"] | None = None, slow_ranks: str | None = None,
        prompt: int | str | None = None, output: int | str | None = None,
        kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None = None,
        schedule: Literal["static", "continuous"] | None = None, rate: float | None = None,
        concurrency: int | None = None, trace: Path | None = None, requests: int | None = None,
        max_num_seqs: int | None = None, max_num_batched_tokens: int | None = None,
        gpu_memory_utilization: float | None = None, max_model_len: int | None = None,
        prefix_hit_rate: float | None = None, server_overhead_s: float | None = None, ttft_s: float | None = None,
        tpot_s: float | None = None, cuda_graphs: bool | Literal["on", "off"] | None = None,
        step_overhead_us: float | None = None,
        all2all_backend: Literal["allgather_reducescatter", "deepep"] | None = None, replicas: int | None = None,
        router: Literal["round-robin", "least-loaded"] | None = None, prefill_workers: int | None = None,
        prefill_tp: int | None = None, prefill_pp: int | None = None, prefill_dp: int | None = None,
        prefill_ep: int | None = None, kv_transfer: Literal["after-prefill", "by-layer"] | None = None,
        speculative_tokens: int | None = None, acceptance_rate: float | None = None, draft_model: str | None = None,
) -> Any: ...
def memory_timeline(
        model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None,
        predictor: Literal["learned", "roofline"] | None = None, clocks: float | str | None = None,
        images: int | None = None, image_size: int | None = None, weights: Path | None = None,
        calibration: Path | None = None, mode: Literal["inference", "training"] | None = None,
        batch: int | None = None, seq: int | None = None,
        dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
        attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
        optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
        optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
        zero_grad: Literal["set-to-none", "zeros"] | None = None,
        loss: Literal["none", "memory", "full"] | None = None,
        checkpointing: Literal["none", "selective", "full"] | None = None, lora_rank: int | None = None,
        lora_targets: str | Sequence[str] | None = None, dim: str | Mapping[str, float] | None = None,
        skip_unsupported: bool | None = None, software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
        host_launch_us: float | None = None, cluster: str | None = None, nodes: int | None = None,
        tp: int | None = None, pp: int | None = None, dp: int | None = None, cp: int | None = None,
        ep: int | None = None, skew: int | None = None, microbatches: int | None = None,
        micro_batch_size: int | None = None, pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None = None,
        num_layers_per_virtual_pipeline_stage: int | None = None, pipeline_layers: str | None = None,
        sequence_parallel: bool | Literal["on", "off"] | None = None,
        zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None = None, bucket_cap_mb: float | None = None,
        overlap_grad_reduce: bool | Literal["on", "off"] | None = None,
        main_params_dtype: Literal["as-model", "fp32"] | None = None, slow_ranks: str | None = None,
        prompt: int | str | None = None, output: int | str | None = None,
        kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None = None,
        schedule: Literal["static", "continuous"] | None = None, rate: float | None = None,
        concurrency: int | None = None, trace: Path | None = None, requests: int | None = None,
        max_num_seqs: int | None = None, max_num_batched_tokens: int | None = None,
        gpu_memory_utilization: float | None = None, max_model_len: int | None = None,
        prefix_hit_rate: float | None = None, server_overhead_s: float | None = None, ttft_s: float | None = None,
        tpot_s: float | None = None, cuda_graphs: bool | Literal["on", "off"] | None = None,
        step_overhead_us: float | None = None,
        all2all_backend: Literal["allgather_reducescatter", "deepep"] | None = None, replicas: int | None = None,
        router: Literal["round-robin", "least-loaded"] | None = None, prefill_workers: int | None = None,
        prefill_tp: int | None = None, prefill_pp: int | None = None, prefill_dp: int | None = None,
        prefill_ep: int | None = None, kv_transfer: Literal["after-prefill", "by-layer"] | None = None,
        speculative_tokens: int | None = None, acceptance_rate: float | None = None, draft_model: str | None = None,
) -> Any: ...
def step_operations(
        model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None,
        predictor: Literal["learned", "roofline"] | None = None, clocks: float | str | None = None,
        images: int | None = None, image_size: int | None = None, weights: Path | None = None,
        calibration: Path | None = None, mode: Literal["inference", "training"] | None = None,
        batch: int | None = None, seq: int | None = None,
        dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
        attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
        optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
        optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
        zero_grad: Literal["set-to-none", "zeros"] | None = None,
        loss: Literal["none", "memory", "full"] | None = None,
        checkpointing: Literal["none", "selective", "full"] | None = None, lora_rank: int | None = None,
        lora_targets: str | Sequence[str] | None = None, dim: str | Mapping[str, float] | None = None,
        skip_unsupported: bool | None = None, software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
        host_launch_us: float | None = None, cluster: str | None = None, nodes: int | None = None,
        tp: int | None = None, pp: int | None = None, dp: int | None = None, cp: int | None = None,
        ep: int | None = None, skew: int | None = None, microbatches: int | None = None,
        micro_batch_size: int | None = None, pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None = None,
        num_layers_per_virtual_pipeline_stage: int | None = None, pipeline_layers: str | None = None,
        sequence_parallel: bool | Literal["on", "off"] | None = None,
        zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None = None, bucket_cap_mb: float | None = None,
        overlap_grad_reduce: bool | Literal["on", "off"] | None = None,
        main_params_dtype: Literal["as-model", "fp32"] | None = None, slow_ranks: str | None = None,
        prompt: int | str | None = None, output: int | str | None = None,
        kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None = None,
        schedule: Literal["static", "continuous"] | None = None, rate: float | None = None,
        concurrency: int | None = None, trace: Path | None = None, requests: int | None = None,
        max_num_seqs: int | None = None, max_num_batched_tokens: int | None = None,
        gpu_memory_utilization: float | None = None, max_model_len: int | None = None,
        prefix_hit_rate: float | None = None, server_overhead_s: float | None = None, ttft_s: float | None = None,
        tpot_s: float | None = None, cuda_graphs: bool | Literal["on", "off"] | None = None,
        step_overhead_us: float | None = None,
        all2all_backend: Literal["allgather_reducescatter", "deepep"] | None = None, replicas: int | None = None,
        router: Literal["round-robin", "least-loaded"] | None = None, prefill_workers: int | None = None,
        prefill_tp: int | None = None, prefill_pp: int | None = None, prefill_dp: int | None = None,
        prefill_ep: int | None = None, kv_transfer: Literal["after-prefill", "by-layer"] | None = None,
        speculative_tokens: int | None = None, acceptance_rate: float | None = None, draft_model: str | None = None,
) -> dict[str, Any]: ...
def occupancy(
        model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None,
        predictor: Literal["learned", "roofline"] | None = None, clocks: float | str | None = None,
        images: int | None = None, image_size: int | None = None, weights: Path | None = None,
        calibration: Path | None = None, mode: Literal["inference", "training"] | None = None,
        batch: int | None = None, seq: int | None = None,
        dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
        attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
        optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
        optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
        zero_grad: Literal["set-to-none", "zeros"] | None = None,
        loss: Literal["none", "memory", "full"] | None = None,
        checkpointing: Literal["none", "selective", "full"] | None = None, lora_rank: int | None = None,
        lora_targets: str | Sequence[str] | None = None, dim: str | Mapping[str, float] | None = None,
        skip_unsupported: bool | None = None, software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
        host_launch_us: float | None = None, cluster: str | None = None, nodes: int | None = None,
        tp: int | None = None, pp: int | None = None, dp: int | None = None, cp: int | None = None,
        ep: int | None = None, skew: int | None = None, microbatches: int | None = None,
        micro_batch_size: int | None = None, pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None = None,
        num_layers_per_virtual_pipeline_stage: int | None = None, pipeline_layers: str | None = None,
        sequence_parallel: bool | Literal["on", "off"] | None = None,
        zero: Literal["0", 0, "1", 1, "2", 2, "3", 3] | None = None, bucket_cap_mb: float | None = None,
        overlap_grad_reduce: bool | Literal["on", "off"] | None = None,
        main_params_dtype: Literal["as-model", "fp32"] | None = None, slow_ranks: str | None = None,
        prompt: int | str | None = None, output: int | str | None = None,
        kv_dtype: Literal["bf16", "fp16", "fp32", "fp8", "int8"] | None = None,
        schedule: Literal["static", "continuous"] | None = None, rate: float | None = None,
        concurrency: int | None = None, trace: Path | None = None, requests: int | None = None,
        max_num_seqs: int | None = None, max_num_batched_tokens: int | None = None,
        gpu_memory_utilization: float | None = None, max_model_len: int | None = None,
        prefix_hit_rate: float | None = None, server_overhead_s: float | None = None, ttft_s: float | None = None,
        tpot_s: float | None = None, cuda_graphs: bool | Literal["on", "off"] | None = None,
        step_overhead_us: float | None = None,
        all2all_backend: Literal["allgather_reducescatter", "deepep"] | None = None, replicas: int | None = None,
        router: Literal["round-robin", "least-loaded"] | None = None, prefill_workers: int | None = None,
        prefill_tp: int | None = None, prefill_pp: int | None = None, prefill_dp: int | None = None,
        prefill_ep: int | None = None, kv_transfer: Literal["after-prefill", "by-layer"] | None = None,
        speculative_tokens: int | None = None, acceptance_rate: float | None = None, draft_model: str | None = None,
        exact: bool | None = None, mapping: str | None = None, parameters: str | Mapping[str, float] | None = None,
) -> str: ...
def kernel(
        op: str, gpu: GpuLike, *, dtype: Literal["fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"] | None = None,
        software: Literal["pytorch", "vllm", "sglang", "trtllm", "rocblas", "pipeweave"] | None = None,
        warm: bool | None = None, predictor: Literal["learned", "roofline"] | None = None,
        clocks: float | str | None = None, weights: Path | None = None, calibration: Path | None = None,
        batch: int | None = None, m: int | None = None, n: int | None = None, k: int | None = None,
        scheme: Literal["fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
        trans_a: bool | None = None, trans_b: bool | None = None, queries: int | None = None, keys: int | None = None,
        heads: int | None = None, kv_heads: int | None = None, head_dim: int | None = None,
        v_head_dim: int | None = None, window: int | None = None, causal: bool | None = None,
        kv_dtype: Literal["fp32", "bf16", "fp16", "fp8", "int8"] | None = None, latent: bool | None = None,
        tokens: int | None = None, width: int | None = None, state_dim: int | None = None, groups: int | None = None,
        delta: bool | None = None, cached: bool | None = None, channels: int | None = None, ffn_dim: int | None = None,
        hidden_dim: int | None = None, num_experts: int | None = None, top_k: int | None = None,
        ranks: int | None = None, skew: int | None = None, gated: int | None = None, bags: int | None = None,
        pooling: int | None = None, dim: int | None = None, table_rows: int | None = None, reuse: str | None = None,
        rows: int | None = None, columns: int | None = None, in_channels: int | None = None,
        out_channels: int | None = None, height: int | None = None, window_height: int | None = None,
        window_width: int | None = None, stride: int | None = None, padding: int | None = None,
        channels_last: bool | None = None, more_columns: int | None = None, selected: int | None = None,
        depth: int | None = None, dilation: int | None = None, transposed: bool | None = None,
        steps: int | None = None, in_features: int | None = None, gates: int | None = None,
        directions: int | None = None, tables: int | None = None, skew_percent: int | None = None,
) -> Any: ...
def collective(
        kind: Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv", "expert_dispatch", "expert_combine"],
        *, cluster: Path, ranks: int, bytes: int, ranks_per_node: int | None = None, nodes: int | None = None,
        concurrent: int | None = None, dtype: str | None = None,
        software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
) -> Any: ...
@overload
def plan(
        model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, cluster: str | None = None,
        nodes: int | None = None, clocks: float | str | None = None,
        price_per_gpu_hour: float | str | Mapping[str, float] | None = None, full_search: bool | None = None,
        weights: Path | None = None, calibration: Path | None = None, tp: int | Sequence[int] | None = None,
        pp: int | Sequence[int] | None = None, ep: int | Sequence[int] | None = None,
        dtype: int | str | Sequence[int | str] | None = None, batch: int | None = None, seq: int | None = None,
        attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
        optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
        optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
        loss: Literal["none", "memory", "full"] | None = None,
        main_params_dtype: Literal["as-model", "fp32"] | None = None,
        overlap_grad_reduce: bool | Literal["on", "off"] | None = None, bucket_cap_mb: float | None = None,
        lora_rank: int | None = None, lora_targets: str | Sequence[str] | None = None,
        predictor: Literal["learned", "roofline"] | None = None, host_launch_us: float | None = None,
        objective: Literal["time", "cost", "memory"] | None = None, top: int | None = None,
        cp: int | Sequence[int] | None = None, micro_batch_size: int | Sequence[int] | None = None,
        pipeline_schedule: int | str | Sequence[int | str] | None = None,
        virtual_stages: int | Sequence[int] | None = None, zero: int | str | Sequence[int | str] | None = None,
        checkpointing: int | str | Sequence[int | str] | None = None,
        sequence_parallel: int | str | Sequence[int | str] | None = None, num_gpus: int | None = None,
        prompt: int | str, output: int | str | None = None,
        software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None, max_num_seqs: int | None = None,
        max_num_batched_tokens: int | None = None, gpu_memory_utilization: float | None = None,
        max_model_len: int | None = None, prefix_hit_rate: float | None = None, server_overhead_s: float | None = None,
        ttft_s: float | None = None, tpot_s: float | None = None,
        cuda_graphs: bool | Literal["on", "off"] | None = None, skew: int | None = None,
        step_overhead_us: float | None = None, percentile: Literal["mean", "median", "p99"] | None = None,
        dp: int | Sequence[int] | None = None, prefill_workers: int | Sequence[int] | None = None,
        concurrency: int | Sequence[int] | None = None, kv_dtype: int | str | Sequence[int | str] | None = None,
) -> Any: ...
@overload
def plan(
        model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, gpus: GpuLike | Sequence[GpuLike],
        cluster: str | None = None, nodes: int | None = None, clocks: float | str | None = None,
        price_per_gpu_hour: float | str | Mapping[str, float] | None = None, full_search: bool | None = None,
        weights: Path | None = None, calibration: Path | None = None, tp: int | Sequence[int] | None = None,
        pp: int | Sequence[int] | None = None, ep: int | Sequence[int] | None = None,
        dtype: int | str | Sequence[int | str] | None = None, batch: int | None = None, seq: int | None = None,
        attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
        optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
        optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
        loss: Literal["none", "memory", "full"] | None = None,
        main_params_dtype: Literal["as-model", "fp32"] | None = None,
        overlap_grad_reduce: bool | Literal["on", "off"] | None = None, bucket_cap_mb: float | None = None,
        lora_rank: int | None = None, lora_targets: str | Sequence[str] | None = None,
        predictor: Literal["learned", "roofline"] | None = None, host_launch_us: float | None = None,
        objective: Literal["time", "cost", "memory"] | None = None, top: int | None = None,
        cp: int | Sequence[int] | None = None, micro_batch_size: int | Sequence[int] | None = None,
        pipeline_schedule: int | str | Sequence[int | str] | None = None,
        virtual_stages: int | Sequence[int] | None = None, zero: int | str | Sequence[int | str] | None = None,
        checkpointing: int | str | Sequence[int | str] | None = None,
        sequence_parallel: int | str | Sequence[int | str] | None = None, num_gpus: int | None = None,
        output: int | str | None = None, software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
        max_num_seqs: int | None = None, max_num_batched_tokens: int | None = None,
        gpu_memory_utilization: float | None = None, max_model_len: int | None = None,
        prefix_hit_rate: float | None = None, server_overhead_s: float | None = None, ttft_s: float | None = None,
        tpot_s: float | None = None, cuda_graphs: bool | Literal["on", "off"] | None = None, skew: int | None = None,
        step_overhead_us: float | None = None, percentile: Literal["mean", "median", "p99"] | None = None,
        dp: int | Sequence[int] | None = None, prefill_workers: int | Sequence[int] | None = None,
        concurrency: int | Sequence[int] | None = None, kv_dtype: int | str | Sequence[int | str] | None = None,
) -> Any: ...
@overload
def plan(
        model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, cluster: str | None = None,
        nodes: int | None = None, clocks: float | str | None = None,
        price_per_gpu_hour: float | str | Mapping[str, float] | None = None, full_search: bool | None = None,
        weights: Path | None = None, calibration: Path | None = None, tp: int | Sequence[int] | None = None,
        pp: int | Sequence[int] | None = None, ep: int | Sequence[int] | None = None,
        dtype: int | str | Sequence[int | str] | None = None, batch: int | None = None, seq: int | None = None,
        attention: Literal["eager", "flash"] | None = None, fusion: Literal["none", "pointwise"] | None = None,
        optimizer: Literal["none", "sgd", "adam", "adamw"] | None = None,
        optimizer_impl: Literal["foreach", "fused", "for-loop"] | None = None,
        loss: Literal["none", "memory", "full"] | None = None,
        main_params_dtype: Literal["as-model", "fp32"] | None = None,
        overlap_grad_reduce: bool | Literal["on", "off"] | None = None, bucket_cap_mb: float | None = None,
        lora_rank: int | None = None, lora_targets: str | Sequence[str] | None = None,
        predictor: Literal["learned", "roofline"] | None = None, host_launch_us: float | None = None,
        objective: Literal["time", "cost", "memory"] | None = None, top: int | None = None,
        cp: int | Sequence[int] | None = None, micro_batch_size: int | Sequence[int] | None = None,
        pipeline_schedule: int | str | Sequence[int | str] | None = None,
        virtual_stages: int | Sequence[int] | None = None, zero: int | str | Sequence[int | str] | None = None,
        checkpointing: int | str | Sequence[int | str] | None = None,
        sequence_parallel: int | str | Sequence[int | str] | None = None, num_gpus: int | None = None,
        output: int | str | None = None, software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None = None,
        max_num_seqs: int | None = None, max_num_batched_tokens: int | None = None,
        gpu_memory_utilization: float | None = None, max_model_len: int | None = None,
        prefix_hit_rate: float | None = None, server_overhead_s: float | None = None, ttft_s: float | None = None,
        tpot_s: float | None = None, cuda_graphs: bool | Literal["on", "off"] | None = None, skew: int | None = None,
        step_overhead_us: float | None = None, percentile: Literal["mean", "median", "p99"] | None = None,
        dp: int | Sequence[int] | None = None, prefill_workers: int | Sequence[int] | None = None,
        concurrency: int | Sequence[int] | None = None, kv_dtype: int | str | Sequence[int | str] | None = None,
) -> Any: ...
def shard(
        tables: Path, *, cluster: Path, nodes: int | None = None, batch: int | None = None,
        dtype: Literal["fp32", "fp16", "bf16"] | None = None, gpu_memory_utilization: float | None = None,
        seed: int | None = None,
) -> Any: ...
def evaluate(
        path: Path, gpu: str | None = None, *, predictor: Literal["learned", "roofline"] | None = None,
        weights: Path | None = None, calibration: Path | None = None,
) -> Any: ...
def train(
        *, data: Path | Sequence[Path], output_file: Path, collectives: bool | None = None,
        exclude_gpu: GpuLike | Sequence[GpuLike] | None = None, trees: int | None = None, seed: int | None = None,
        threads: int | None = None, intervals: Literal["leave-one-out", "held-out"] | None = None,
) -> None: ...
def tune(
        problem: ModelLike | None = None, gpu: GpuLike | None = None, *, inputs: Any = None, solver: str | None = None,
        top: int | None = None, beam: int | None = None, from_log: Path | None = None,
        mode: Literal["inference", "training"] | None = None, batch: int | None = None, seq: int | None = None,
        dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None = None,
) -> Any: ...
def sweep(
        spec: Path, *, output_file: Path | None = None, threads: int | None = None,
) -> None: ...
def calibrate(
        gpu: GpuLike, *, measurements: Path | Sequence[Path] | None = None, output_file: Path | None = None,
        weights: Path | None = None,
) -> None: ...
def suggest_kernels(
        gpu: GpuLike, *, suggest: int | None = None, candidates: Path | None = None, weights: Path | None = None,
) -> str: ...
def gpus() -> list[GpuEntry]: ...
def clusters() -> Any: ...
def models() -> list[ModelEntry]: ...
def ops() -> list[OpEntry]: ...
