// GGUF files made in memory.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "importers/gguf/header.h"
#include "importers/model.h"
#include "test_support.h"

namespace tilecast {
namespace {

template <typename T>
std::string bytes(T value) {
  std::string text(sizeof(T), '\0');
  std::memcpy(text.data(), &value, sizeof(T));
  return text;
}

std::string text(const std::string& value) { return bytes(uint64_t{value.size()}) + value; }

/// A file under construction.
struct File {
  uint32_t version = 3;
  uint64_t values = 0, tensors = 0;
  std::string metadata, list;

  void add_value(const std::string& key, uint32_t type, const std::string& content) {
    values += 1;
    metadata += text(key) + bytes(type) + content;
  }
  void add(const std::string& key, uint32_t value) { add_value(key, 4, bytes(value)); }
  void add(const std::string& key, const std::string& value) { add_value(key, 8, text(value)); }
  void add_tensor(const std::string& name, const std::vector<uint64_t>& dims, uint32_t type) {
    tensors += 1;
    list += text(name) + bytes(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) list += bytes(dim);
    list += bytes(type) + bytes(uint64_t{0});
  }
  std::string content() const {
    return "GGUF" + bytes(version) + bytes(tensors) + bytes(values) + metadata + list;
  }
};

constexpr uint32_t kF32 = 0, kF16 = 1, kQ40 = 2, kQ80 = 8, kQ4K = 12, kQ6K = 14;

/// Llama-3.1-8B as llama.cpp's quantize writes Q4_K_M: values and down projections of half the
/// layers, and the output layer, are in Q6_K.
File llama_8b_file() {
  File f;
  constexpr uint64_t kHidden = 4096, kFfn = 14336, kVocab = 128256, kKv = 1024, kLayers = 32;
  f.add("general.architecture", "llama");
  f.add("llama.block_count", kLayers);
  f.add("llama.context_length", 131072);
  f.add("llama.embedding_length", kHidden);
  f.add("llama.feed_forward_length", kFfn);
  f.add("llama.attention.head_count", 32);
  f.add("llama.attention.head_count_kv", 8);
  f.add_tensor("token_embd.weight", {kHidden, kVocab}, kQ4K);
  f.add_tensor("output.weight", {kHidden, kVocab}, kQ6K);
  f.add_tensor("output_norm.weight", {kHidden}, kF32);
  f.add_tensor("rope_freqs.weight", {64}, kF32);
  for (uint64_t i = 0; i < kLayers; ++i) {
    const std::string p = "blk." + std::to_string(i) + ".";
    const bool more = i < kLayers / 8 || i >= 7 * kLayers / 8 || (i - kLayers / 8) % 3 == 2;
    f.add_tensor(p + "attn_norm.weight", {kHidden}, kF32);
    f.add_tensor(p + "ffn_norm.weight", {kHidden}, kF32);
    f.add_tensor(p + "attn_q.weight", {kHidden, kHidden}, kQ4K);
    f.add_tensor(p + "attn_k.weight", {kHidden, kKv}, kQ4K);
    f.add_tensor(p + "attn_v.weight", {kHidden, kKv}, more ? kQ6K : kQ4K);
    f.add_tensor(p + "attn_output.weight", {kHidden, kHidden}, kQ4K);
    f.add_tensor(p + "ffn_gate.weight", {kHidden, kFfn}, kQ4K);
    f.add_tensor(p + "ffn_up.weight", {kHidden, kFfn}, kQ4K);
    f.add_tensor(p + "ffn_down.weight", {kFfn, kHidden}, more ? kQ6K : kQ4K);
  }
  return f;
}

/// A Llama of one layer whose linear layers have one type.
File small(uint32_t type, const std::string& architecture = "llama") {
  File f;
  f.add("general.architecture", architecture);
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, uint32_t>>{{"block_count", 1},
                                                     {"context_length", 2048},
                                                     {"embedding_length", 256},
                                                     {"feed_forward_length", 512},
                                                     {"attention.head_count", 4},
                                                     {"attention.head_count_kv", 2}})
    f.add(architecture + "." + key, value);
  f.add_tensor("token_embd.weight", {256, 1000}, kF16);
  f.add_tensor("output_norm.weight", {256}, kF32);
  const std::pair<const char*, std::vector<uint64_t>> weights[] = {
      {"attn_q", {256, 256}},      {"attn_k", {256, 128}},   {"attn_v", {256, 128}},
      {"attn_output", {256, 256}}, {"ffn_gate", {256, 512}}, {"ffn_up", {256, 512}},
      {"ffn_down", {512, 256}}};
  for (const auto& [name, dims] : weights)
    f.add_tensor(std::string("blk.0.") + name + ".weight", dims, type);
  f.add_tensor("blk.0.attn_norm.weight", {256}, kF32);
  f.add_tensor("blk.0.ffn_norm.weight", {256}, kF32);
  return f;
}

Model read(const File& file) { return import_model(file.content(), "small.gguf"); }

TEST(Gguf, BytesAreThoseOfTheTensors) {
  const Model model = import_model(llama_8b_file().content(), "llama.gguf");
  // llama.cpp prints "model size = 4.58 GiB (4.89 BPW)", "model params = 8.03 B".
  EXPECT_EQ(model.checkpoint.weights_bytes, 4'912'898'304);
  EXPECT_EQ(model.build({.seq = 8}).parameter_count(), 8'030'261'248);
  EXPECT_TRUE(model.warnings.empty());
  ASSERT_EQ(model.checkpoint.warnings.size(), 1u);
  EXPECT_NE(model.checkpoint.warnings[0].find("4.89 bits on average (Q4_K 74 %, Q6_K 26 %"),
            std::string::npos)
      << model.checkpoint.warnings[0];
  EXPECT_EQ(model.checkpoint.scheme_of("layers.0.self_attn.v_proj"), QuantScheme::kInt8WeightOnly);
  EXPECT_EQ(model.checkpoint.scheme_of("layers.5.self_attn.v_proj"), QuantScheme::kInt4WeightOnly);
  EXPECT_EQ(model.checkpoint.quantization, "gguf");
}

TEST(Gguf, ATableOfTypes) {
  // Bits of a weight of the public specification.
  const std::pair<uint32_t, double> rows[] = {
      {kF32, 32},  {kF16, 16},   {kQ40, 4.5}, {kQ80, 8.5}, {kQ4K, 4.5}, {kQ6K, 6.5625},
      {10, 2.625}, {11, 3.4375}, {13, 5.5},   {23, 4.25},  {39, 4.25}};
  for (const auto& [id, bits] : rows) {
    const GgufType* type = find_gguf_type(id);
    ASSERT_NE(type, nullptr) << id;
    EXPECT_EQ(8.0 * static_cast<double>(type->bytes) / static_cast<double>(type->block), bits)
        << type->name;
  }
  EXPECT_EQ(find_gguf_type(9), nullptr) << "Q8_1 is never stored";
}

TEST(Gguf, OtherFamiliesAndPlainTypes) {
  const Model plain = read(small(kF16));
  EXPECT_TRUE(plain.checkpoint.schemes.empty());
  EXPECT_EQ(plain.checkpoint.dtype, DType::kFp16);
  EXPECT_EQ(plain.checkpoint.dtype_field, "gguf");
  EXPECT_EQ(plain.family, "llama");
  EXPECT_EQ(read(small(kQ80)).checkpoint.schemes,
            std::vector<QuantScheme>{QuantScheme::kInt8WeightOnly});
  EXPECT_EQ(read(small(kQ40, "qwen3")).family, "qwen3");
  // Without the norms of queries and keys, a Qwen3 has fewer parameters than it should.
  const Model qwen = read(small(kQ40, "qwen3"));
  ASSERT_EQ(qwen.warnings.size(), 1u);
  EXPECT_NE(qwen.warnings[0].find("the file's tensors have"), std::string::npos);
}

TEST(Gguf, OnlyCountsOfTokenizersAreKept) {
  File f = small(kQ40);
  std::string tokens = bytes(uint32_t{8}) + bytes(uint64_t{2}) + text("a") + text("b");
  f.add_value("tokenizer.ggml.tokens", 9, tokens);
  f.add_value("tokenizer.ggml.scores", 9, bytes(uint32_t{6}) + bytes(uint64_t{1}) + bytes(1.0F));
  f.add_value("sizes", 9, bytes(uint32_t{5}) + bytes(uint64_t{2}) + bytes(3) + bytes(-4));
  const std::optional<GgufHeader> header = read_gguf_header(f.content(), "x");
  ASSERT_TRUE(header);
  EXPECT_EQ(std::get<GgufCount>(header->values.at("tokenizer.ggml.tokens")).elements, 2);
  EXPECT_EQ(std::get<std::vector<int64_t>>(header->values.at("sizes")),
            (std::vector<int64_t>{3, -4}));
}

TEST(Gguf, EveryPrefixIsIncomplete) {
  const std::string whole = small(kQ40).content();
  for (size_t length = 4; length < whole.size(); ++length) {
    ASSERT_FALSE(read_gguf_header(whole.substr(0, length), "x")) << length;
    EXPECT_ERROR(import_model(whole.substr(0, length), "x.gguf"), kInput, "ends within its header");
  }
  EXPECT_TRUE(read_gguf_header(whole + "data", "x"));
}

TEST(Gguf, BadFilesAreSaid) {
  File f = small(kQ40);
  f.version = 1;
  EXPECT_ERROR(read(f), kUnsupported, "small.gguf: byte 4: GGUF of version 1; expected 2 or 3");
  f.version = 0x03000000;
  EXPECT_ERROR(read(f), kUnsupported, "big-endian");
  f = small(kQ40);
  f.tensors = uint64_t{1} << 60;
  EXPECT_ERROR(read(f), kInput, "1152921504606846976 tensors, expected at most");
  f = small(kQ40);
  f.values = uint64_t{1} << 60;
  EXPECT_ERROR(read(f), kInput, "values, expected at most");
  f = small(kQ40);
  f.add_value("text", 8, bytes(uint64_t{1} << 40));
  EXPECT_ERROR(read(f), kInput, "bytes of a text, expected at most");
  f = small(kQ40);
  f.add_value("list", 9, bytes(uint32_t{4}) + bytes(~uint64_t{0}));
  EXPECT_ERROR(read(f), kInput, "'list' has 18446744073709551615 elements");
  f = small(kQ40);
  f.add_value("odd", 99, "");
  EXPECT_ERROR(read(f), kInput, "'odd' has the type 99, expected 0 to 12");
  f = small(kQ40);
  f.add("llama.block_count", 2);
  EXPECT_ERROR(read(f), kInput, "'llama.block_count' occurs twice");
  f = small(kQ40);
  f.add_tensor("odd", {100}, kQ4K);
  EXPECT_ERROR(read(f), kInput, "rows of 100 elements, which are not whole blocks of 256 (Q4_K)");
  f = small(kQ40);
  f.add_tensor("odd", {uint64_t{1} << 39, uint64_t{1} << 39}, kF32);
  EXPECT_ERROR(read(f), kInput, "");
  f = small(kQ40);
  f.add_tensor("odd", {32}, 77);
  EXPECT_ERROR(read(f), kUnsupported, "the unknown type 77");
}

/// The tensors of small() in `count` files, as llama-gguf-split divides them.
void write_parts(const TemporaryFolder& folder, uint16_t count) {
  const File whole = small(kQ40);
  const std::string all = "split.tensors.count";
  for (uint16_t i = 0; i < count; ++i) {
    File part;
    if (i == 0) part = whole;
    if (i > 0) part.add_tensor("blk.0.more_" + std::to_string(i) + ".weight", {256}, kF32);
    part.add_value("split.no", 2, bytes(i));
    part.add_value("split.count", 2, bytes(count));
    part.add_value(all, 5, bytes(static_cast<int32_t>(whole.tensors + count - 1)));
    write_file((folder.path() / fmt::format("small-{:05}-of-{:05}.gguf", i + 1, count)).string(),
               part.content());
  }
}

TEST(Gguf, PartsAreReadTogetherWhicheverIsNamed) {
  const TemporaryFolder folder;
  write_parts(folder, 3);
  const Model whole = read(small(kQ40));
  for (const char* name : {"small-00001-of-00003.gguf", "small-00003-of-00003.gguf"}) {
    const Model model = load_model((folder.path() / name).string());
    EXPECT_EQ(model.name, "small");
    EXPECT_EQ(*model.checkpoint.weights_bytes, *whole.checkpoint.weights_bytes + 2 * 4 * 256);
  }
}

TEST(Gguf, MissingPartsAreNamed) {
  const TemporaryFolder folder;
  write_parts(folder, 3);
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  std::filesystem::rename(path("small-00002-of-00003.gguf"), path("other.gguf"));
  EXPECT_ERROR(load_model(path("small-00001-of-00003.gguf")), kNotFound,
               "small-00002-of-00003.gguf: no such file");
  EXPECT_ERROR(load_model(path("other.gguf")), kInput,
               "is part 2 of 3; expected a name that ends in -00002-of-00003.gguf");
  std::filesystem::copy(path("small-00003-of-00003.gguf"), path("small-00002-of-00003.gguf"));
  EXPECT_ERROR(load_model(path("small-00001-of-00003.gguf")), kInput, "has the same 'split.no' as");
}

TEST(Gguf, NamesNeedNotBeText) {
  File f = small(kQ40);
  f.add_tensor("blk.\xff.attn_q.weight", {256, 256}, kQ40);
  f.add("\xff\xfe", "\xff");
  EXPECT_EQ(read(f).warnings.size(), 1u) << "a tensor that the model does not have";
}

TEST(Gguf, UnsupportedModelsAreSaid) {
  EXPECT_ERROR(read(small(kQ40, "lama")), kUnsupported,
               "unknown architecture 'lama'; did you mean");
  File f = small(kQ40);
  f.add_value("split.count", 2, bytes(uint16_t{3}));
  EXPECT_ERROR(read(f), kInput, "is one of 3 parts; 1 is given");
  f = File{};
  f.add("general.architecture", "llama");
  EXPECT_ERROR(read(f), kInput, "'llama.embedding_length' is missing");
  f = File{};
  EXPECT_ERROR(read(f), kInput, "'general.architecture' is missing");
}

}  // namespace
}  // namespace tilecast
