#include <gtest/gtest.h>

#include "base/text.h"
#include "report/kernel_text.h"
#include "report/plan_text.h"
#include "report/text_table.h"
#include "test_support.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

TEST(Shorten, NamesLoseThePartThatRepeatsFirst) {
  EXPECT_EQ(shorten_front("h.0.mlp.c_fc", 12), "h.0.mlp.c_fc");
  EXPECT_EQ(shorten_front("h.0.mlp.c_fc", 11), "…mlp.c_fc");
  EXPECT_EQ(shorten_front("h.0.mlp.c_fc", 8), "…c_fc");
  EXPECT_EQ(shorten_front("layers.0.self_attn.qkv_proj", 20), "…self_attn.qkv_proj");
  EXPECT_EQ(shorten_front("layers.0.self_attn.qkv_proj", 18), "…qkv_proj");
  EXPECT_EQ(shorten_front("encoder.layer.11.output.dense", 22), "…output.dense");
  EXPECT_EQ(shorten_front("bwd h.0.attn.softmax", 17), "bwd …attn.softmax");
  EXPECT_EQ(shorten_front("bwd h.0.attn.softmax", 13), "bwd …softmax");
  EXPECT_EQ(shorten_front("bwd h.0.attn.softmax", 11), "…softmax") << "the mark goes last";
  EXPECT_EQ(shorten_front("layers.0.self_attn.k_proj +1", 12), "…k_proj +1");
  EXPECT_EQ(shorten_front("nvidia-a100-sxm4-80gb", 16), "…a100-sxm4-80gb");
  EXPECT_EQ(shorten_front("llama-3.1-70b", 9), "…3.1-70b") << "a version, no layer";
  EXPECT_EQ(shorten_front("abcdefghijklmnop", 9), "…ijklmnop");
  EXPECT_EQ(shorten_front("layers.0.mlp.gate_up_proj", 13), "…gate_up_proj");
  EXPECT_EQ(shorten_front("abcdef", 2), "ab");
}

TEST(Kernels, OfEqualWorkAreOneRow) {
  const auto kernel = [](std::string_view name, std::string_view phase, int64_t bytes) {
    return KernelForecast{.name = name,
                          .op = "linear",
                          .phase = phase,
                          .dtype = "bf16",
                          .count = 2,
                          .latency_s = 1e-3,
                          .bytes = bytes};
  };
  const std::vector<JoinedKernels> joined =
      join_alike({kernel("layers.0.k_proj", "forward", 8), kernel("layers.0.v_proj", "forward", 8),
                  kernel("layers.3.k_proj", "forward", 8), kernel("layers.0.k_proj", "backward", 8),
                  kernel("layers.3.k_proj", "forward", 9)});
  ASSERT_EQ(joined.size(), 3u);
  EXPECT_EQ(joined[0].count, 6);
  EXPECT_DOUBLE_EQ(joined[0].seconds, 6e-3);
  EXPECT_EQ(joined[0].name("forward"), "layers.0.k_proj +1");
  EXPECT_EQ(joined[1].name("forward"), "bwd layers.0.k_proj");
  EXPECT_EQ(joined[2].name("forward"), "layers.3.k_proj");
}

TEST(Shorten, DescriptionsLoseTheirLastWords) {
  EXPECT_EQ(shorten_end("linear [4096x5120x1280] tile 128x64", 24), "linear [4096x5120x1280]…");
  EXPECT_EQ(shorten_end("A100, A100-80GB, A100-SXM", 18), "A100, A100-80GB…");
  EXPECT_EQ(shorten_end("abcdefgh", 5), "abcd…");
  EXPECT_EQ(shorten_end("äöüäöü", 4), "äöü…");
}

/// Columns are left out where rows would need a second line, the least important first.
TEST(TextTable, RowsOfOneLineLoseTheLeastImportantColumns) {
  const TextTable table{.header = {"", "name", "alike", "cost"},
                        .rows = {{"1", std::string(20, 'a'), std::string(20, 'b'), "30"}},
                        .right = {true, false, true, true}};
  const auto header_at = [&](int width) {
    TableStyle style;
    style.width = width;
    return in_one_line(table, style, 2, {"bubble", "alike", "cost"}).header;
  };
  EXPECT_EQ(header_at(80), table.header);
  EXPECT_EQ(header_at(53), table.header);
  EXPECT_EQ(header_at(52), (std::vector<std::string>{"", "name", "cost"}));
  TableStyle narrow;
  narrow.width = 52;
  const TextTable left = in_one_line(table, narrow, 2, {"alike"});
  EXPECT_EQ(left.rows.front(), (std::vector<std::string>{"1", std::string(20, 'a'), "30"}));
  EXPECT_EQ(left.right, (std::vector<bool>{true, false, true}));
}

TEST(Wrap, KeepsANumberWithItsUnit) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrap_text("takes about 3.17 ms more", 16), (Lines{"takes about", "3.17 ms more"}));
  EXPECT_EQ(wrap_text("interval 2.75 ms to 4.75 ms", 12),
            (Lines{"interval", "2.75 ms to", "4.75 ms"}));
  EXPECT_EQ(wrap_text("reads 131 MB, then 3 TB/s", 10),
            (Lines{"reads", "131 MB,", "then", "3 TB/s"}));
  EXPECT_EQ(wrap_text("of 1,024 tokens", 9), (Lines{"of 1,024", "tokens"})) << "too wide together";
  EXPECT_EQ(wrap_text("layer 12 is s", 9), (Lines{"layer 12", "is s"}));
}

TEST(Wrap, BreaksAtBlanksAndInLongWords) {
  EXPECT_EQ(wrap_text("one two three", 8), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap_text("abcdefgh ij", 4), (std::vector<std::string>{"abcd", "efgh", "ij"}));
  EXPECT_EQ(wrap_text("", 4), (std::vector<std::string>{""}));
}

TEST(MemorySvg, LegendHasAPartThatIsDrawnButAbsentAtThePeak) {
  MemoryTimeline timeline;
  timeline.device_bytes = int64_t{1} << 30;
  timeline.points = {{.phase = "forward", .node = "y", .parts = {.activations_bytes = 1 << 20}},
                     {.phase = "backward", .node = "y", .parts = {.gradients_bytes = 1 << 19}}};
  const std::string svg = memory_svg(timeline);
  EXPECT_NE(svg.find(">activations<"), std::string::npos);
  EXPECT_NE(svg.find(">gradients<"), std::string::npos);
  EXPECT_EQ(svg.find(">optimizer<"), std::string::npos) << "it is nowhere";
}

TEST(MemorySvg, NamesOfNarrowPhasesDoNotOverlap) {
  MemoryTimeline timeline;
  timeline.device_bytes = int64_t{1} << 30;
  const auto add = [&](std::string_view phase, int count) {
    for (int i = 0; i < count; ++i)
      timeline.points.push_back(
          {.phase = phase, .node = "y", .parts = {.activations_bytes = 1 << 20}});
  };
  add("forward", 3);
  add("backward", 1000);
  add("optimizer", 2);
  const std::string svg = memory_svg(timeline);
  const auto place = [&](const std::string& name) {
    const size_t end = svg.find(">" + name + "<"), start = svg.rfind("<text", end);
    const std::string tag = svg.substr(start, end - start);
    const size_t x = tag.find("x=\"") + 3;
    return std::pair(std::stod(tag.substr(x)), tag);
  };
  const auto [forward, forward_tag] = place("forward");
  const auto [optimizer, optimizer_tag] = place("optimizer");
  EXPECT_LT(forward, 100) << "below its part, at the left end";
  EXPECT_GT(optimizer, 600) << "below its part, at the right end";
  EXPECT_NE(place("backward").second.find("middle"), std::string::npos);
}

TEST(MemoryTable, EqualRowsAreOne) {
  MemoryTimeline timeline;
  timeline.fits = true;
  timeline.device_bytes = int64_t{1} << 30;
  timeline.reserved_high_bytes = int64_t{2} << 30;
  for (int64_t i = 0; i < 12; ++i)
    timeline.points.push_back({.phase = "forward",
                               .segment = "h",
                               .repetition = i,
                               .node = "y",
                               .parts = {.activations_bytes = 1 << 20}});
  const std::string table = memory_table(timeline, {.width = 200});
  EXPECT_NE(table.find("h 0 to 11"), std::string::npos) << table;
  EXPECT_EQ(table.find("h 10"), std::string::npos) << table;
  EXPECT_NE(table.find("unless fragmentation"), std::string::npos) << table;
}

TextTable sample_table() {
  TextTable table;
  table.header = {"name", "in interval %", "what it is"};
  table.rows = {{"layers.0.self_attn.qkv_proj", "12.5", "a sentence that takes several words"},
                {"lm_head", "1.0", "short"}};
  table.right = {false, true, false};
  table.fit = {Fit::kFront, Fit::kWhole, Fit::kWrap};
  return table;
}

TEST(KernelWarnings, SayWhatWasNotMeasured) {
  const auto warning = [](std::string_view feature) {
    KernelForecast kernel;
    kernel.op = "linear";
    kernel.dtype = "bf16";
    kernel.extrapolated = !feature.empty();
    kernel.extrapolated_feature = feature;
    return kernel_warnings({kernel});
  };
  const auto ends = [&](std::string_view feature, std::string_view end) {
    const std::vector<std::string> warnings = warning(feature);
    ASSERT_EQ(warnings.size(), 1u) << feature;
    EXPECT_TRUE(warnings[0].ends_with(end)) << warnings[0];
  };
  EXPECT_TRUE(warning("").empty());
  ends("log2_m", "is extrapolated: its log2_m is outside the training range");
  ends("dtype", "is extrapolated: its dtype is outside the training range");
  ends("architecture", "is extrapolated: no GPU of this architecture was measured");
  ends("vendor", "is extrapolated: no GPU of this vendor was measured");
  ends("model", "its time is the roofline of the data sheet");
}

TEST(TextTable, IsAsWideAsItsCellsWhereThereIsRoom) {
  EXPECT_EQ(format_text_table(sample_table(), {.width = 120}, 2),
            "  name                         in interval %  what it is\n"
            "  layers.0.self_attn.qkv_proj           12.5  a sentence that takes several words\n"
            "  lm_head                                1.0  short\n");
}

TEST(TextTable, GivesWayToTheWidth) {
  EXPECT_EQ(format_text_table(sample_table(), {.width = 60}),
            "                           in\n"
            "                     interval\n"
            "name                        %  what it is\n"
            "…self_attn.qkv_proj      12.5  a sentence that takes several\n"
            "                               words\n"
            "lm_head                   1.0  short\n");
}

TEST(TextTable, PutsColumnsBelowWhereNoneCanGiveWay) {
  TextTable table;
  table.header = {"a", "b", "c"};
  table.rows = {{std::string(30, 'x'), "1234567", "12345678"}};
  table.right = {false, true, true};
  EXPECT_EQ(format_text_table(table, {.width = 40}),
            "a                                     b\n"
            "           c\n" +
                std::string(30, 'x') +
                "  1234567\n"
                "    12345678\n");
}

TEST(TextTable, NoLineIsWiderThanTheTerminal) {
  for (int width = 40; width < 130; ++width) {
    for (const char* text : {"", "word", "a longer text with several words in it and no end"}) {
      TextTable table = sample_table();
      table.rows.push_back({std::string(70, 'n'), std::string(50, '1'), text});
      const std::string out = format_text_table(table, {.width = width}, 2);
      for (size_t start = 0; start < out.size();) {
        const size_t end = out.find('\n', start);
        EXPECT_LE(display_width(out.substr(start, end - start)), static_cast<size_t>(width)) << out;
        EXPECT_NE(out[end - 1], ' ') << "blank at a line's end";
        start = end + 1;
      }
    }
  }
}

TEST(TextTable, ColorsDoNotMoveColumns) {
  TextTable table = sample_table();
  table.color = [](size_t row, size_t column) {
    return row == 0 && column == 1 ? Color::kRed : Color::kNone;
  };
  std::string out = format_text_table(table, {.width = 70, .color = true});
  EXPECT_NE(out.find("\x1b[31m12.5\x1b[0m"), std::string::npos);
  for (size_t at = out.find('\x1b'); at != std::string::npos; at = out.find('\x1b'))
    out.erase(at, out.find('m', at) - at + 1);
  EXPECT_EQ(out, format_text_table(table, {.width = 70}));
}

/// The lines of a command can be pasted: backslashes join them to the command.
TEST(Report, LaunchLinesAreOneCommandAtAnyWidth) {
  const std::string command =
      "python -m serve.it --model-path m --tp-size 8 --enable-attention --ep-size 8 --last 1";
  for (const int width : {40, 60, 80, 120}) {
    const std::string text = launch_text({{"server", command, "--dp 4"}}, {.width = width});
    EXPECT_TRUE(text.starts_with("\nserver; no flag sets --dp 4:\n  python -m")) << text;
    std::string joined;
    for (const std::string& line : split(text.substr(text.find("\n  ") + 1), '\n')) {
      EXPECT_LE(line.size(), static_cast<size_t>(width)) << line;
      const size_t end = line.find(" \\");
      if (line.empty()) continue;
      joined += (joined.empty() ? "" : " ") +
                line.substr(line.find_first_not_of(' '),
                            end == std::string::npos ? end : end - line.find_first_not_of(' '));
    }
    EXPECT_EQ(joined, command) << width;
    EXPECT_EQ(text.find("--tp-size \\"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tilecast
