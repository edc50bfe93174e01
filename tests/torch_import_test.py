#!/usr/bin/env python3
"""tilecast.torch: modules traced to graph notation, which the program forecasts. Skipped where PyTorch is not installed.

    tests/torch_import_test.py <tilecast>
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/pytorch"))
try:
    import torch
except ImportError as error:
    print(f"skipped: {error}; pip install torch")
    sys.exit(0)
from tilecast_torch import package  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

TILECAST = ""
F = nn.functional


def forecast(text, mode="inference", *options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tcg"
        path.write_text(text)
        run = subprocess.run([TILECAST, "forecast", str(path), "--gpu", "A100", "--mode", mode, "--format", "json", *options],
                             capture_output=True, text=True)
    if run.returncode:
        raise AssertionError(run.stderr + text)
    return json.loads(run.stdout)


def operators(text, phase=None):
    """The operators of the nodes, of one phase or of all."""
    found, now = [], "forward"
    for line in text.splitlines():
        if line.startswith("  phase "):
            now = line.split()[1]
        elif " = " in line and (phase is None or phase == now):
            found.append(line.split(" = ")[1].split("(")[0])
    return [op for op in found if op not in ("alias", "hold", "allocate")]


class Mlp(nn.Module):
    def __init__(self, device="meta"):
        super().__init__()
        self.first = nn.Linear(64, 256, device=device)
        self.second = nn.Linear(256, 10, bias=False, device=device)

    def forward(self, x):
        return self.second(F.relu(self.first(x)))


def of(function):
    """A module without parameters."""
    class Plain(nn.Module):
        def forward(self, *args):
            return function(*args)
    return Plain()


class Graphs(unittest.TestCase):
    def test_a_forward_pass_has_the_kernels_of_eager_pytorch(self):
        text = package.export_graph(Mlp(), (torch.zeros(32, 64),))
        self.assertEqual(operators(text), ["linear", "relu", "linear"])
        result = forecast(text)
        self.assertEqual(result["parameters"], 64 * 256 + 256 + 256 * 10)
        self.assertEqual(sum(k["flops"] for k in result["kernels"] if k["op"] == "linear"), 2 * 32 * (64 * 256 + 256 * 10))

    def test_a_training_step_has_autograds_kernels_and_a_gradient_of_each_parameter(self):
        module = Mlp()
        module.first.bias.requires_grad_(False)
        text = package.export_graph(module, (torch.zeros(32, 64),), mode="training")
        backward = operators(text, "backward")
        self.assertEqual(backward.count("gemm"), 3)  # the input needs no gradient
        self.assertEqual(backward.count("add_"), 2)
        self.assertIn("weight first.bias: fp32[256] frozen", text)
        memory = forecast(text, "training", "--optimizer", "adamw")["memory"]
        self.assertEqual(memory["gradients_bytes"], 4 * (64 * 256 + 256 * 10))
        self.assertEqual(memory["optimizer_bytes"], 2 * memory["gradients_bytes"])

    def test_a_graph_with_a_backward_pass_is_for_training(self):
        text = package.export_graph(Mlp(), (torch.zeros(32, 64),), mode="training")
        with self.assertRaisesRegex(AssertionError, "use --mode training"):
            forecast(text)

    def test_flops_equal_pytorchs_counter(self):
        module = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2, padding=1, device="meta"), nn.BatchNorm2d(16, device="meta"), nn.SiLU(True),
                               nn.Conv2d(16, 32, (3, 5), dilation=2, device="meta"), nn.ConvTranspose2d(32, 8, 2, 2, device="meta"),
                               nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10, device="meta"))
        images = torch.zeros(2, 3, 64, 64)
        for mode in ("inference", "training"):
            with self.subTest(mode=mode):
                counter = FlopCounterMode(display=False)
                traced = package.tracing.trace(module, (images,), {}, training=mode == "training", modes=[counter])
                result = forecast(package.write(traced, "net").text(traced.outputs), mode)
                products = sum(k["flops"] * k["count"] for k in result["kernels"] if {"m", "in_channels"} & set(k["shape"]))
                self.assertEqual(products, counter.get_total_flops())

    def test_kernels_over_rows_copy_strided_operands(self):
        x = torch.zeros(2, 64, 49)
        norm = of(lambda x: F.layer_norm(x.transpose(1, 2), (64,)))
        self.assertEqual(operators(package.export_graph(norm, (x,))), ["copy", "layer_norm"])
        softmax = of(lambda x: x.transpose(1, 2).softmax(-1) + x.transpose(1, 2).softmax(1))
        self.assertEqual(operators(package.export_graph(softmax, (x,))), ["copy", "softmax", "softmax", "add"])
        self.assertEqual(operators(package.export_graph(of(lambda x: x.softmax(-1)), (x,))), ["softmax"])

    def test_group_norm_copies_images_with_the_channels_last(self):
        x = torch.zeros(2, 16, 8, 8)
        self.assertEqual(operators(package.export_graph(of(lambda x: F.group_norm(x, 4)), (x,))), ["group_norm"])
        last = x.to(memory_format=torch.channels_last)
        self.assertEqual(operators(package.export_graph(of(lambda x: F.group_norm(x, 4)), (last,))), ["copy", "group_norm"])

    def test_roll_launches_a_kernel_for_each_dimension(self):
        x = torch.zeros(2, 64, 49)
        self.assertEqual(operators(package.export_graph(of(lambda x: torch.roll(x, (1, 2), (1, 2))), (x,))), ["copy", "stream"])
        self.assertEqual(operators(package.export_graph(of(lambda x: torch.roll(x, 1, 1)), (x,))), ["stream"])

    def test_attention_is_the_fused_kernel_of_cuda(self):
        q = torch.zeros(2, 8, 128, 64)
        causal = of(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True))
        for dtype in (torch.float32, torch.bfloat16):
            text = package.export_graph(causal, (q.to(dtype),))
            self.assertEqual(operators(text), ["attention"])
            self.assertIn("{causal=1}", text)
        learned = nn.MultiheadAttention(64, 4, batch_first=True, dropout=0.1, device="meta")
        text = package.export_graph(learned, (torch.zeros(2, 16, 64),) * 3, {"need_weights": False}, mode="training")
        self.assertEqual(operators(text, "forward").count("attention"), 1)
        self.assertEqual(operators(text, "backward").count("attention_backward"), 1)

    def test_autocast_casts_as_on_cuda(self):
        module = nn.Sequential(nn.Linear(64, 64, device="meta"), nn.LayerNorm(64, device="meta"), nn.Linear(64, 8, device="meta"))
        text = package.export_graph(module, (torch.zeros(4, 64),), mode="training", autocast=torch.bfloat16)
        # weight, bias and input; what layer norm reads, in FP32; weight, bias and input of the second layer
        self.assertEqual(operators(text, "forward"), ["cast"] * 3 + ["linear", "cast", "layer_norm"] + ["cast"] * 3 + ["linear"])
        gradients = [line.split(": ")[1][:4] for line in text.splitlines() if line.startswith("gradient")]
        self.assertEqual(gradients, ["fp32"] * 6)

    def test_recurrent_layers_are_cudnns(self):
        module = nn.LSTM(16, 8, num_layers=2, bidirectional=True, batch_first=True, device="meta")
        for mode, backward in (("inference", 0), ("training", 4)):
            text = package.export_graph(module, (torch.zeros(4, 10, 16),), mode=mode)
            self.assertEqual(operators(text).count("recurrent"), 4)
            self.assertEqual(operators(text).count("recurrent_backward"), backward)
            forecast(text, mode)

    def test_autocast_runs_recurrent_layers_in_16_bits(self):
        module = nn.LSTM(16, 8, bidirectional=True, batch_first=True, device="meta")
        text = package.export_graph(module, (torch.zeros(4, 10, 16),), autocast=torch.float16)
        self.assertEqual(operators(text).count("cast"), 3 + 8)  # the input, both states, four weights of each direction
        kernels = [kernel for kernel in forecast(text)["kernels"] if kernel["op"] == "recurrent"]
        self.assertEqual({kernel["dtype"] for kernel in kernels}, {"fp16"})

    def test_batch_norms_in_training_keep_the_layout(self):
        module = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False, device="meta"), nn.BatchNorm2d(8, device="meta"))
        x = torch.zeros(2, 3, 8, 8)
        for images, pixels in ((x, 0), (x.to(memory_format=torch.channels_last), 1)):
            text = package.export_graph(module, (images,), mode="training")
            norms = [line for line in text.splitlines() if "= batch_norm" in line]
            self.assertEqual(len(norms), 2)
            self.assertEqual([line.count("channels_last=1") for line in norms], [pixels] * 2)
            forecast(text, "training")

    def test_packed_sequences_are_those_of_full_length(self):
        class Packed(nn.Module):
            def __init__(self, kind):
                super().__init__()
                self.layer = kind(16, 8, num_layers=2, bidirectional=True, batch_first=True, device="meta")

            def forward(self, x, lengths):
                packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
                return nn.utils.rnn.pad_packed_sequence(self.layer(packed)[0], batch_first=True)[0]
        for kind in (nn.LSTM, nn.GRU):
            for mode, backward in (("inference", 0), ("training", 4)):
                with self.assertWarnsRegex(UserWarning, "all packed sequences were taken to be as long as the padded ones"):
                    text = package.export_graph(Packed(kind), (torch.zeros(4, 10, 16), torch.tensor([10, 7, 3, 2])), mode=mode)
                self.assertEqual(operators(text).count("recurrent"), 4)
                self.assertEqual(operators(text).count("recurrent_backward"), backward)
                self.assertIn("output", text)
                forecast(text, mode)

    def test_embedding_bags_are_sums_of_rows(self):
        module = nn.EmbeddingBag(1000, 64, mode="sum", device="meta")
        text = package.export_graph(module, (torch.zeros(32, 10, dtype=torch.long),))
        self.assertEqual(operators(text)[-1], "embedding_bag")
        bags = [kernel for kernel in forecast(text)["kernels"] if kernel["op"] == "embedding_bag"]
        self.assertEqual([(bag["shape"]["bags"], bag["shape"]["pooling"]) for bag in bags], [(32, 10)])
        text = package.export_graph(module, (torch.zeros(32, 10, dtype=torch.long),), mode="training")
        self.assertIn("embedding_backward", operators(text, "backward"))
        forecast(text, "training")
        text = package.export_graph(nn.EmbeddingBag(1000, 64, mode="max", device="meta"), (torch.zeros(32, 10, dtype=torch.long),))
        self.assertEqual(operators(text)[-1], "stream")

    def test_distances_of_many_points_are_a_product(self):
        text = package.export_graph(of(torch.cdist), (torch.zeros(2, 100, 3), torch.zeros(2, 50, 3)))
        self.assertEqual(operators(text).count("matmul"), 1)
        self.assertEqual([k["flops"] for k in forecast(text)["kernels"] if k["op"] == "matmul"], [2 * 2 * 100 * 50 * 5])
        text = package.export_graph(of(torch.cdist), (torch.zeros(100, 3), torch.zeros(50, 3)))
        self.assertEqual(operators(text).count("gemm"), 1)

    def test_complex_products_have_the_flops_of_real_ones(self):
        def spectral(x, w):
            return torch.fft.irfft(torch.einsum("bik,iok->bok", torch.fft.rfft(x), w))
        text = package.export_graph(of(spectral), (torch.zeros(4, 8, 30), torch.zeros(8, 16, 16, dtype=torch.cfloat)))
        said = [kernel for kernel in forecast(text)["kernels"] if kernel["flops"] == 8 * 4 * 8 * 16 * 16]
        self.assertEqual(len(said), 1)
        self.assertIn('unmeasured="complex_product"', text)

    def test_a_result_that_the_caller_gives_is_no_operand(self):
        def normalized(x, out):
            return F.normalize(x, dim=0, out=out)
        text = package.export_graph(of(normalized), (torch.zeros(64), torch.zeros(64)))
        self.assertEqual(operators(text)[-1], "div")
        forecast(text)

    def test_experts_in_fp32_are_imported(self):
        def experts(x, weights):
            offsets = torch.zeros(4, dtype=torch.int32)
            return F.grouped_mm(x, weights, offs=offsets)
        text = package.export_graph(of(experts), (torch.zeros(64, 32), torch.zeros(4, 32, 128)))
        self.assertIn("matmul", operators(text))
        self.assertEqual([k["flops"] for k in forecast(text)["kernels"] if k["op"] == "matmul"], [2 * 64 * 32 * 128])

    def test_deformable_convolutions_gather_and_multiply(self):
        try:
            _ = torch.ops.torchvision.deform_conv2d.default
        except AttributeError:
            library = torch.library.Library("torchvision", "FRAGMENT")
            self.addCleanup(library._destroy)
            library.define("deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
                           "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, "
                           "SymInt offset_groups, bool use_mask) -> Tensor")
            torch.library.register_fake("torchvision::deform_conv2d", lambda x, weight, offset, *_: x.new_empty(
                (x.shape[0], weight.shape[0], *offset.shape[2:])), lib=library)

        def deformed(x, weight, offset, mask, bias):
            return torch.ops.torchvision.deform_conv2d(x, weight, offset, mask, bias, 1, 1, 1, 1, 1, 1, 1, 1, False)
        text = package.export_graph(of(deformed), (torch.zeros(2, 16, 20, 20), torch.zeros(32, 16, 3, 3), torch.zeros(2, 18, 20, 20),
                                                   torch.zeros(2, 0), torch.zeros(32)))
        self.assertEqual(operators(text), ["stream", "gemm"])
        self.assertEqual([k["flops"] for k in forecast(text)["kernels"] if k["op"] == "gemm"], [2 * 32 * 144 * 800])

    def test_weight_standardization_is_a_batch_norm(self):
        def standardized(x, weight, gain):
            return nn.functional.batch_norm(weight.view(1, 16, -1), None, None, weight=gain, training=True).sum() + x
        text = package.export_graph(of(standardized), (torch.zeros(4), torch.zeros(16, 3, 3, 3), torch.ones(16)))
        self.assertEqual(operators(text)[0], "batch_norm")
        self.assertIn("training=1", text)

    def test_dropout_is_one_kernel_in_training_and_none_in_inference(self):
        module = nn.Sequential(nn.Linear(8, 8, device="meta"), nn.Dropout(0.5))
        x = torch.zeros(4, 8)
        self.assertEqual(operators(package.export_graph(module, (x,))), ["linear"])
        self.assertIn("dropout", operators(package.export_graph(module, (x,), mode="training"), "forward"))

    def test_views_launch_nothing_and_work_in_place_takes_no_memory(self):
        views = of(lambda x: x.view(64, 64).t()[:32].unsqueeze(0).expand(4, 32, 64))
        self.assertEqual(operators(package.export_graph(of(lambda x: F.relu(views(x))), (torch.zeros(4096),))), ["relu"])
        size = 1 << 20
        chain = of(lambda x: x.mul(2).add_(1).relu_())
        memory = forecast(package.export_graph(chain, (torch.zeros(size),)))["memory"]
        self.assertEqual(memory["peak_bytes"] - memory["framework_bytes"] - memory["workspace_bytes"], 2 * 4 * size)

    def test_a_variable_keeps_its_tensor_in_memory(self):
        def block(x):
            kept = x * 2
            y = kept + 1
            y = y * 2
            y = y * 2
            return y
        size = 1 << 20
        memory = forecast(package.export_graph(of(block), (torch.zeros(size),)))["memory"]
        # x, kept, and operand and result of a product
        self.assertEqual(memory["peak_bytes"] - memory["framework_bytes"] - memory["workspace_bytes"], 4 * 4 * size)

    def test_views_of_tensors_that_the_code_keeps_launch_nothing(self):
        kept = [torch.zeros(9, 4)]  # as the anchors of torchvision's detectors: in a list, so no buffer
        text = package.export_graph(of(lambda x: x + kept[0].view(1, -1, 4)), (torch.zeros(5, 1, 4),))
        self.assertEqual(operators(text), ["add"])
        self.assertIn("buffer constant", text)

    def test_tied_weights_count_once(self):
        module = Mlp()
        module.third = nn.Linear(10, 256, bias=False, device="meta")
        module.third.weight = nn.Parameter(module.second.weight.detach())
        module.second.weight = module.third.weight
        module.forward = lambda x: F.linear(F.linear(F.relu(module.first(x)), module.second.weight), module.second.weight.t())
        result = forecast(package.export_graph(module, (torch.zeros(4, 64),)))
        self.assertEqual(result["parameters"], 64 * 256 + 256 + 2560)

    def test_no_memory_is_allocated(self):
        huge = nn.Linear(1 << 18, 1 << 18, device="meta")  # 256 GiB
        text = package.export_graph(huge, (torch.empty(1, 1 << 18, device="meta"),))
        self.assertIn("fp32[262144, 262144]", text)

    def test_the_module_is_left_as_it_was(self):
        module = Mlp("cpu").eval()
        weight, storage = module.first.weight, module.first.weight.data_ptr()
        package.export_graph(module, (torch.zeros(4, 64),), mode="training")
        self.assertIs(module.first.weight, weight)
        self.assertEqual(module.first.weight.data_ptr(), storage)
        self.assertIsNone(module.first.weight.grad)
        self.assertFalse(module.training)
        self.assertEqual(module(torch.ones(4, 64)).shape, (4, 10))

    def test_buffers_written_in_training_are_no_weights(self):
        text = package.export_graph(nn.BatchNorm1d(8, device="meta"), (torch.zeros(4, 8),), mode="training")
        self.assertIn("buffer running_mean: fp32[8]", text)
        self.assertEqual(forecast(text, "training")["parameters"], 16)


class UnknownOperators(unittest.TestCase):
    def test_one_is_a_streaming_kernel_and_named_in_warnings(self):
        library = torch.library.Library("tilecast_test", "FRAGMENT")
        self.addCleanup(library._destroy)
        library.define("frob(Tensor x) -> Tensor")
        library.impl("frob", lambda x: torch.empty_like(x), "CPU")
        library.impl("frob", lambda x: torch.empty_like(x), "Meta")
        module = of(lambda x: torch.ops.tilecast_test.frob(x) + 1)
        with self.assertWarnsRegex(UserWarning, r"unknown operators.*tilecast_test.frob \(1 times\)"):
            text = package.export_graph(module, (torch.zeros(64, 64),))
        self.assertEqual(operators(text), ["stream", "add_scalar"])
        messages = forecast(text)["warnings"]
        self.assertTrue(any("tilecast_test.frob (1 times, " in message for message in messages), messages)


class UnmeasuredOperators(unittest.TestCase):
    def test_they_are_named_in_warnings_with_their_share(self):
        def pools(x):
            return nn.functional.interpolate(nn.functional.avg_pool2d(torch.relu(x), 2), scale_factor=2.0, mode="bilinear")
        text = package.export_graph(of(pools), (torch.zeros(8, 64, 56, 56),))
        said = [message for message in forecast(text)["warnings"] if "without a measured kernel" in message]
        self.assertEqual(len(said), 1)
        self.assertRegex(said[0], r"avg_pool2d \(1 times, .*upsample_bilinear2d \(1 times, ")
        self.assertNotIn("relu", said[0])


    def test_operators_that_only_stream_are_known(self):
        def odd(x, v):
            x = F.pad(F.interpolate(x, scale_factor=2, mode="nearest-exact"), (1, 1, 1, 1), mode="reflect")
            v = F.interpolate(F.pad(v, (1,) * 6, mode="reflect"), scale_factor=2, mode="nearest-exact")
            return x.cummax(-1).values + x.cummin(-2).values + torch.logcumsumexp(x, 1), F.pad(v, (1,) * 6, mode="replicate")
        for mode in ("inference", "training"):
            inputs = (torch.zeros(2, 3, 8, 8, requires_grad=True), torch.zeros(1, 2, 4, 4, 4, requires_grad=True))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                text = package.export_graph(of(odd), inputs, mode=mode)
            for name in ("_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "cummax", "cummin", "logcumsumexp"):
                self.assertIn(f'unmeasured="{name}"', text)

    def test_writes_at_positions_touch_only_these(self):
        def put(x, positions, values):
            x = x + 1
            x[positions] = values
            return x
        text = package.export_graph(of(put), (torch.zeros(100_000, 8), torch.zeros(4, dtype=torch.long), torch.zeros(4, 8)))
        written = forecast(text)["kernels"][-1]
        self.assertLess(written["bytes"], 1000)


class Failures(unittest.TestCase):
    def test_an_operator_without_a_gradient_is_named_with_the_way_round(self):
        with self.assertRaisesRegex(package.TraceError, r"gradient through an operator.*_unique2.*; call .detach\(\)"):
            package.export_graph(of(lambda x: torch.unique(x * 2).sum()), (torch.zeros(4, requires_grad=True),), mode="training")

    def test_a_value_that_decides_names_the_line_and_the_way_round(self):
        def branch(x):
            return x * int(x.sum())  # the line that is named
        with self.assertRaisesRegex(package.TraceError, r"torch_import_test.py:\d+ .*the line that is named.*value of a tensor.*replace="):
            package.export_graph(of(branch), (torch.zeros(4),))

    def test_code_that_leaves_pytorch_names_the_way_round(self):
        with self.assertRaisesRegex(package.TraceError, r"torch_import_test.py:\d+ .*leaves PyTorch.*; compute with tensors"):
            package.export_graph(of(lambda x: torch.from_numpy(x.numpy() * 2)), (torch.zeros(4),))

    def test_a_function_may_replace_a_module(self):
        class Odd(nn.Module):
            def forward(self, x):
                return x[: int(x.sum())]
        module = nn.Sequential(nn.Linear(8, 8, device="meta"), Odd(), nn.Linear(8, 4, device="meta"))
        for key in (Odd, "1"):
            text = package.export_graph(module, (torch.zeros(4, 8),), replace={key: lambda module, x: x[:2]})
            self.assertEqual(operators(text), ["linear", "linear"])
            self.assertIn("alias(t1) {shape=[2, 8]}", text)

    def test_a_condition_on_values_is_taken_to_hold_with_a_warning(self):
        module = of(lambda x: x + 1 if bool((x == 1).all()) else x * 2)
        with self.assertWarnsRegex(UserWarning, "a condition on values of tensors was taken to hold"):
            self.assertIn("add_scalar", operators(package.export_graph(module, (torch.zeros(4),))))

    def test_selections_that_depend_on_values_are_taken_to_keep_all(self):
        if not hasattr(torch.ops.torchvision, "nms"):
            library = torch.library.Library("torchvision", "FRAGMENT")
            self.addCleanup(library._destroy)
            library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            torch.library.register_fake("torchvision::nms", lambda boxes, scores, threshold: torch.empty(
                torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64), lib=library)

        def detect(boxes, scores):
            kept = boxes[scores > 0.5]
            return kept[torch.ops.torchvision.nms(kept, scores[scores > 0.5], 0.5)], torch.unique(scores)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            text = package.export_graph(of(detect), (torch.zeros(100, 4), torch.zeros(100)))
        notes = " ".join(str(warning.message) for warning in said)
        for sentence in ("selected by a mask (2 times)", "be distinct (1 times)", "kept by non-maximum suppression (1 times)"):
            self.assertIn(sentence, notes)
        self.assertIn("fp32[100, 4]", text[text.index("="):])

    def test_the_line_of_another_library_is_named(self):
        beside = os.path.dirname(torch.__file__) + "vision_of_a_test.py"
        code = compile("def failing(x):\n    raise ValueError('no such box')", beside, "exec")
        scope = {}
        exec(code, scope)
        with self.assertRaisesRegex(package.TraceError, "vision_of_a_test.py:2 .*no such box"):
            package.export_graph(of(lambda x: scope["failing"](x)), (torch.zeros(4),))

    def test_wrong_arguments_say_what_was_expected(self):
        with self.assertRaisesRegex(TypeError, "expected a torch.nn.Module, found int"):
            package.export_graph(3)
        with self.assertRaisesRegex(ValueError, "expected 'inference' or 'training', found 'train'"):
            package.export_graph(Mlp(), (torch.zeros(4, 64),), mode="train")
        with self.assertRaisesRegex(package.TraceError, "the example inputs fit the module"):
            package.export_graph(Mlp(), (torch.zeros(4, 63),))
        with self.assertRaisesRegex(package.TraceError, "nothing to train"):
            package.export_graph(of(lambda x: x + 1), (torch.zeros(4),), mode="training")


if __name__ == "__main__":
    TILECAST = os.path.abspath(sys.argv.pop(1))
    warnings.filterwarnings("ignore", message=".*lazy.*")
    unittest.main(verbosity=1)
