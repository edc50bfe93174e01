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

class _Estimate(Record):
    def __float__(self) -> float: ...

class _Step(Record):
    latency: Estimate

class _ServedPart(Record):
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

class _LlmForecast(Record, _Result):
    ttft: Estimate
    """time_to_first_token"""
    tpot: Estimate
    """time_per_output_token"""

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

class Model:
    """A model that has been read and checked."""
    name: str

class Gpu:
    """A device that has been read and checked."""
    id: str
    warnings: list[str]

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

class ForecastKeywords(TypedDict, total=False):
    predictor: Literal["learned", "roofline"] | None
    clocks: float | str | None
    images: int | None
    image_size: int | None
    mode: Literal["inference", "training"] | None
    batch: int | None
    seq: int | None
    dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None
    attention: Literal["eager", "flash"] | None
    fusion: Literal["none", "pointwise"] | None
    optimizer: Literal["none", "sgd", "adam", "adamw"] | None
    optimizer_impl: Literal["foreach", "fused", "for-loop"] | None
    zero_grad: Literal["set-to-none", "zeros"] | None
    loss: Literal["none", "memory", "full"] | None
    checkpointing: Literal["none", "selective", "full"] | None
    lora_rank: int | None
    lora_targets: str | Sequence[str] | None
    dim: str | Mapping[str, float] | None
    skip_unsupported: bool | None
    software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None
    host_launch_us: float | None
    cluster: str | None
    nodes: int | None
    tp: int | None
    pp: int | None
    dp: int | None
    cp: int | None
    ep: int | None
    skew: int | None
    microbatches: int | None
    micro_batch_size: int | None
    pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None
    num_layers_per_virtual_pipeline_stage: int | None
    pipeline_layers: str | None
    sequence_parallel: bool | Literal["on", "off"] | None
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
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    gpu_memory_utilization: float | None
    max_model_len: int | None
    prefix_hit_rate: float | None
    server_overhead_s: float | None
    ttft_s: float | None
    tpot_s: float | None
    cuda_graphs: bool | Literal["on", "off"] | None
    step_overhead_us: float | None
    all2all_backend: Literal["allgather_reducescatter", "deepep"] | None
    replicas: int | None
    router: Literal["round-robin", "least-loaded"] | None
    prefill_workers: int | None
    prefill_tp: int | None
    prefill_pp: int | None
    prefill_dp: int | None
    prefill_ep: int | None
    kv_transfer: Literal["after-prefill", "by-layer"] | None
    speculative_tokens: int | None
    acceptance_rate: float | None
    draft_model: str | None

class CompareKeywords(TypedDict, total=False):
    predictor: Literal["learned", "roofline"] | None
    clocks: float | str | None
    images: int | None
    image_size: int | None
    mode: Literal["inference", "training"] | None
    batch: int | None
    seq: int | None
    dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None
    attention: Literal["eager", "flash"] | None
    fusion: Literal["none", "pointwise"] | None
    optimizer: Literal["none", "sgd", "adam", "adamw"] | None
    optimizer_impl: Literal["foreach", "fused", "for-loop"] | None
    zero_grad: Literal["set-to-none", "zeros"] | None
    loss: Literal["none", "memory", "full"] | None
    checkpointing: Literal["none", "selective", "full"] | None
    lora_rank: int | None
    lora_targets: str | Sequence[str] | None
    dim: str | Mapping[str, float] | None
    skip_unsupported: bool | None
    software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None
    host_launch_us: float | None
    cluster: str | None
    nodes: int | None
    tp: int | None
    pp: int | None
    dp: int | None
    cp: int | None
    ep: int | None
    skew: int | None
    microbatches: int | None
    micro_batch_size: int | None
    pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None
    num_layers_per_virtual_pipeline_stage: int | None
    pipeline_layers: str | None
    sequence_parallel: bool | Literal["on", "off"] | None
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
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    gpu_memory_utilization: float | None
    max_model_len: int | None
    prefix_hit_rate: float | None
    server_overhead_s: float | None
    ttft_s: float | None
    tpot_s: float | None
    cuda_graphs: bool | Literal["on", "off"] | None
    step_overhead_us: float | None
    all2all_backend: Literal["allgather_reducescatter", "deepep"] | None
    replicas: int | None
    router: Literal["round-robin", "least-loaded"] | None
    prefill_workers: int | None
    prefill_tp: int | None
    prefill_pp: int | None
    prefill_dp: int | None
    prefill_ep: int | None
    kv_transfer: Literal["after-prefill", "by-layer"] | None
    speculative_tokens: int | None
    acceptance_rate: float | None
    draft_model: str | None

class MemoryTimelineKeywords(TypedDict, total=False):
    predictor: Literal["learned", "roofline"] | None
    clocks: float | str | None
    images: int | None
    image_size: int | None
    mode: Literal["inference", "training"] | None
    batch: int | None
    seq: int | None
    dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None
    attention: Literal["eager", "flash"] | None
    fusion: Literal["none", "pointwise"] | None
    optimizer: Literal["none", "sgd", "adam", "adamw"] | None
    optimizer_impl: Literal["foreach", "fused", "for-loop"] | None
    zero_grad: Literal["set-to-none", "zeros"] | None
    loss: Literal["none", "memory", "full"] | None
    checkpointing: Literal["none", "selective", "full"] | None
    lora_rank: int | None
    lora_targets: str | Sequence[str] | None
    dim: str | Mapping[str, float] | None
    skip_unsupported: bool | None
    software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None
    host_launch_us: float | None
    cluster: str | None
    nodes: int | None
    tp: int | None
    pp: int | None
    dp: int | None
    cp: int | None
    ep: int | None
    skew: int | None
    microbatches: int | None
    micro_batch_size: int | None
    pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None
    num_layers_per_virtual_pipeline_stage: int | None
    pipeline_layers: str | None
    sequence_parallel: bool | Literal["on", "off"] | None
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
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    gpu_memory_utilization: float | None
    max_model_len: int | None
    prefix_hit_rate: float | None
    server_overhead_s: float | None
    ttft_s: float | None
    tpot_s: float | None
    cuda_graphs: bool | Literal["on", "off"] | None
    step_overhead_us: float | None
    all2all_backend: Literal["allgather_reducescatter", "deepep"] | None
    replicas: int | None
    router: Literal["round-robin", "least-loaded"] | None
    prefill_workers: int | None
    prefill_tp: int | None
    prefill_pp: int | None
    prefill_dp: int | None
    prefill_ep: int | None
    kv_transfer: Literal["after-prefill", "by-layer"] | None
    speculative_tokens: int | None
    acceptance_rate: float | None
    draft_model: str | None

class StepOperationsKeywords(TypedDict, total=False):
    predictor: Literal["learned", "roofline"] | None
    clocks: float | str | None
    images: int | None
    image_size: int | None
    mode: Literal["inference", "training"] | None
    batch: int | None
    seq: int | None
    dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None
    attention: Literal["eager", "flash"] | None
    fusion: Literal["none", "pointwise"] | None
    optimizer: Literal["none", "sgd", "adam", "adamw"] | None
    optimizer_impl: Literal["foreach", "fused", "for-loop"] | None
    zero_grad: Literal["set-to-none", "zeros"] | None
    loss: Literal["none", "memory", "full"] | None
    checkpointing: Literal["none", "selective", "full"] | None
    lora_rank: int | None
    lora_targets: str | Sequence[str] | None
    dim: str | Mapping[str, float] | None
    skip_unsupported: bool | None
    software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None
    host_launch_us: float | None
    cluster: str | None
    nodes: int | None
    tp: int | None
    pp: int | None
    dp: int | None
    cp: int | None
    ep: int | None
    skew: int | None
    microbatches: int | None
    micro_batch_size: int | None
    pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None
    num_layers_per_virtual_pipeline_stage: int | None
    pipeline_layers: str | None
    sequence_parallel: bool | Literal["on", "off"] | None
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
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    gpu_memory_utilization: float | None
    max_model_len: int | None
    prefix_hit_rate: float | None
    server_overhead_s: float | None
    ttft_s: float | None
    tpot_s: float | None
    cuda_graphs: bool | Literal["on", "off"] | None
    step_overhead_us: float | None
    all2all_backend: Literal["allgather_reducescatter", "deepep"] | None
    replicas: int | None
    router: Literal["round-robin", "least-loaded"] | None
    prefill_workers: int | None
    prefill_tp: int | None
    prefill_pp: int | None
    prefill_dp: int | None
    prefill_ep: int | None
    kv_transfer: Literal["after-prefill", "by-layer"] | None
    speculative_tokens: int | None
    acceptance_rate: float | None
    draft_model: str | None

class OccupancyKeywords(TypedDict, total=False):
    predictor: Literal["learned", "roofline"] | None
    clocks: float | str | None
    images: int | None
    image_size: int | None
    mode: Literal["inference", "training"] | None
    batch: int | None
    seq: int | None
    dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None
    attention: Literal["eager", "flash"] | None
    fusion: Literal["none", "pointwise"] | None
    optimizer: Literal["none", "sgd", "adam", "adamw"] | None
    optimizer_impl: Literal["foreach", "fused", "for-loop"] | None
    zero_grad: Literal["set-to-none", "zeros"] | None
    loss: Literal["none", "memory", "full"] | None
    checkpointing: Literal["none", "selective", "full"] | None
    lora_rank: int | None
    lora_targets: str | Sequence[str] | None
    dim: str | Mapping[str, float] | None
    skip_unsupported: bool | None
    software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None
    host_launch_us: float | None
    cluster: str | None
    nodes: int | None
    tp: int | None
    pp: int | None
    dp: int | None
    cp: int | None
    ep: int | None
    skew: int | None
    microbatches: int | None
    micro_batch_size: int | None
    pipeline_schedule: Literal["gpipe", "1f1b", "interleaved"] | None
    num_layers_per_virtual_pipeline_stage: int | None
    pipeline_layers: str | None
    sequence_parallel: bool | Literal["on", "off"] | None
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
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    gpu_memory_utilization: float | None
    max_model_len: int | None
    prefix_hit_rate: float | None
    server_overhead_s: float | None
    ttft_s: float | None
    tpot_s: float | None
    cuda_graphs: bool | Literal["on", "off"] | None
    step_overhead_us: float | None
    all2all_backend: Literal["allgather_reducescatter", "deepep"] | None
    replicas: int | None
    router: Literal["round-robin", "least-loaded"] | None
    prefill_workers: int | None
    prefill_tp: int | None
    prefill_pp: int | None
    prefill_dp: int | None
    prefill_ep: int | None
    kv_transfer: Literal["after-prefill", "by-layer"] | None
    speculative_tokens: int | None
    acceptance_rate: float | None
    draft_model: str | None
    exact: bool | None
    mapping: str | None
    parameters: str | Mapping[str, float] | None

class KernelKeywords(TypedDict, total=False):
    dtype: Literal["fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"] | None
    software: Literal["pytorch", "vllm", "sglang", "trtllm", "rocblas", "pipeweave"] | None
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

class CollectiveKeywords(TypedDict, total=False):
    ranks_per_node: int | None
    nodes: int | None
    concurrent: int | None
    dtype: str | None
    software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None

class PlanKeywords(TypedDict, total=False):
    cluster: str | None
    nodes: int | None
    clocks: float | str | None
    price_per_gpu_hour: float | str | Mapping[str, float] | None
    full_search: bool | None
    tp: int | Sequence[int] | None
    pp: int | Sequence[int] | None
    ep: int | Sequence[int] | None
    dtype: int | str | Sequence[int | str] | None
    batch: int | None
    seq: int | None
    attention: Literal["eager", "flash"] | None
    fusion: Literal["none", "pointwise"] | None
    optimizer: Literal["none", "sgd", "adam", "adamw"] | None
    optimizer_impl: Literal["foreach", "fused", "for-loop"] | None
    loss: Literal["none", "memory", "full"] | None
    main_params_dtype: Literal["as-model", "fp32"] | None
    overlap_grad_reduce: bool | Literal["on", "off"] | None
    bucket_cap_mb: float | None
    lora_rank: int | None
    lora_targets: str | Sequence[str] | None
    predictor: Literal["learned", "roofline"] | None
    host_launch_us: float | None
    objective: Literal["time", "cost", "memory"] | None
    top: int | None
    cp: int | Sequence[int] | None
    micro_batch_size: int | Sequence[int] | None
    pipeline_schedule: int | str | Sequence[int | str] | None
    virtual_stages: int | Sequence[int] | None
    zero: int | str | Sequence[int | str] | None
    checkpointing: int | str | Sequence[int | str] | None
    sequence_parallel: int | str | Sequence[int | str] | None
    num_gpus: int | None
    output: int | str | None
    software: Literal["pytorch", "vllm", "sglang", "trtllm"] | None
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    gpu_memory_utilization: float | None
    max_model_len: int | None
    prefix_hit_rate: float | None
    server_overhead_s: float | None
    ttft_s: float | None
    tpot_s: float | None
    cuda_graphs: bool | Literal["on", "off"] | None
    skew: int | None
    step_overhead_us: float | None
    percentile: Literal["mean", "median", "p99"] | None
    dp: int | Sequence[int] | None
    prefill_workers: int | Sequence[int] | None
    concurrency: int | Sequence[int] | None
    kv_dtype: int | str | Sequence[int | str] | None

class ShardKeywords(TypedDict, total=False):
    nodes: int | None
    batch: int | None
    dtype: Literal["fp32", "fp16", "bf16"] | None
    gpu_memory_utilization: float | None
    seed: int | None

class EvaluateKeywords(TypedDict, total=False):
    predictor: Literal["learned", "roofline"] | None

class TrainKeywords(TypedDict, total=False):
    collectives: bool | None
    exclude_gpu: GpuLike | Sequence[GpuLike] | None
    trees: int | None
    seed: int | None
    threads: int | None
    intervals: Literal["leave-one-out", "held-out"] | None

class TuneKeywords(TypedDict, total=False):
    solver: str | None
    top: int | None
    beam: int | None
    from_log: Path | None
    mode: Literal["inference", "training"] | None
    batch: int | None
    seq: int | None
    dtype: Literal["fp32", "tf32", "bf16", "fp16", "amp", "amp-fp16", "fp8", "fp8_block", "int8", "int8_wo", "int4_wo", "fp4_wo", "fp4", "fp8_wo", "nvfp4_wo", "fp4_fp8"] | None

class SweepKeywords(TypedDict, total=False):
    output_file: Path | None
    threads: int | None

class CalibrateKeywords(TypedDict, total=False):
    measurements: Path | Sequence[Path] | None
    output_file: Path | None
    weights: Path | None

class SuggestKernelsKeywords(TypedDict, total=False):
    suggest: int | None
    candidates: Path | None
    weights: Path | None

class Forecaster:
    """Forecasts with one set of weights."""
    def __init__(self, weights: Path = "", calibration: Path = "") -> None: ...
    def forecast_many(self, table: Any, *, threads: int = 0, **options: Any) -> ForecastTable: ...
    @overload
    def forecast(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, prompt: int | str, trace: Path | None = None, **options: Unpack[ForecastKeywords]) -> LlmForecast: ...
    @overload
    def forecast(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, prompt: int | str | None = None, trace: Path, **options: Unpack[ForecastKeywords]) -> LlmForecast: ...
    @overload
    def forecast(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, exact: bool, mapping: str | None = None, parameters: str | Mapping[str, float] | None = None, **options: Unpack[ForecastKeywords]) -> AcceleratorForecast: ...
    @overload
    def forecast(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, exact: bool | None = None, mapping: str, parameters: str | Mapping[str, float] | None = None, **options: Unpack[ForecastKeywords]) -> AcceleratorForecast: ...
    @overload
    def forecast(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, exact: bool | None = None, mapping: str | None = None, parameters: str | Mapping[str, float], **options: Unpack[ForecastKeywords]) -> AcceleratorForecast: ...
    @overload
    def forecast(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, **options: Unpack[ForecastKeywords]) -> Forecast: ...
    def compare(self, model: ModelLike, gpus: GpuLike | Sequence[GpuLike] | None = None, *, inputs: Any = None, **options: Unpack[CompareKeywords]) -> Any: ...
    def memory_timeline(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, **options: Unpack[MemoryTimelineKeywords]) -> Any: ...
    def step_operations(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, **options: Unpack[StepOperationsKeywords]) -> dict[str, Any]: ...
    def occupancy(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, **options: Unpack[OccupancyKeywords]) -> str: ...
    def kernel(self, op: str, gpu: GpuLike, **options: Unpack[KernelKeywords]) -> Any: ...
    @overload
    def plan(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, prompt: int | str, **options: Unpack[PlanKeywords]) -> Any: ...
    @overload
    def plan(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, gpus: GpuLike | Sequence[GpuLike], **options: Unpack[PlanKeywords]) -> Any: ...
    @overload
    def plan(self, model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, **options: Unpack[PlanKeywords]) -> Any: ...
    def evaluate(self, path: Path, gpu: str | None = None, **options: Unpack[EvaluateKeywords]) -> Any: ...

@overload
def forecast(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, prompt: int | str, trace: Path | None = None, **options: Unpack[ForecastKeywords]) -> LlmForecast: ...
@overload
def forecast(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, prompt: int | str | None = None, trace: Path, **options: Unpack[ForecastKeywords]) -> LlmForecast: ...
@overload
def forecast(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, exact: bool, mapping: str | None = None, parameters: str | Mapping[str, float] | None = None, **options: Unpack[ForecastKeywords]) -> AcceleratorForecast: ...
@overload
def forecast(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, exact: bool | None = None, mapping: str, parameters: str | Mapping[str, float] | None = None, **options: Unpack[ForecastKeywords]) -> AcceleratorForecast: ...
@overload
def forecast(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, exact: bool | None = None, mapping: str | None = None, parameters: str | Mapping[str, float], **options: Unpack[ForecastKeywords]) -> AcceleratorForecast: ...
@overload
def forecast(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[ForecastKeywords]) -> Forecast: ...
def compare(model: ModelLike, gpus: GpuLike | Sequence[GpuLike] | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[CompareKeywords]) -> Any: ...
def memory_timeline(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[MemoryTimelineKeywords]) -> Any: ...
def step_operations(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[StepOperationsKeywords]) -> dict[str, Any]: ...
def occupancy(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[OccupancyKeywords]) -> str: ...
def kernel(op: str, gpu: GpuLike, *, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[KernelKeywords]) -> Any: ...
def collective(kind: Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv", "expert_dispatch", "expert_combine"], *, cluster: Path, ranks: int, bytes: int, **options: Unpack[CollectiveKeywords]) -> Any: ...
@overload
def plan(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, prompt: int | str, **options: Unpack[PlanKeywords]) -> Any: ...
@overload
def plan(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, gpus: GpuLike | Sequence[GpuLike], weights: Path | None = None, calibration: Path | None = None, **options: Unpack[PlanKeywords]) -> Any: ...
@overload
def plan(model: ModelLike, gpu: GpuLike | None = None, *, inputs: Any = None, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[PlanKeywords]) -> Any: ...
def shard(tables: Path, *, cluster: Path, **options: Unpack[ShardKeywords]) -> Any: ...
def evaluate(path: Path, gpu: str | None = None, *, weights: Path | None = None, calibration: Path | None = None, **options: Unpack[EvaluateKeywords]) -> Any: ...
def train(*, data: Path | Sequence[Path], output_file: Path, **options: Unpack[TrainKeywords]) -> None: ...
def tune(problem: ModelLike | None = None, gpu: GpuLike | None = None, *, inputs: Any = None, **options: Unpack[TuneKeywords]) -> Any: ...
def sweep(spec: Path, **options: Unpack[SweepKeywords]) -> None: ...
def calibrate(gpu: GpuLike, **options: Unpack[CalibrateKeywords]) -> None: ...
def suggest_kernels(gpu: GpuLike, **options: Unpack[SuggestKernelsKeywords]) -> str: ...
def gpus() -> list[GpuEntry]: ...
def clusters() -> Any: ...
def models() -> list[ModelEntry]: ...
def ops() -> list[OpEntry]: ...
