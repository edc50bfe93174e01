// What is installed here: weights, the GPUs of this machine beside their device files, optional
// parts. The tools of the drivers are asked, not their libraries: those may be missing or hang.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>

#include "allocation/linear_program.h"
#include "base/embedded.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "base/weights_container.h"
#include "command/question.h"
#include "devices/registry.h"
#include "importers/hub.h"
#include "measurements/xz.h"
#include "profile/sqlite_file.h"
#include "profile/text_source.h"
#include "tilecast/error.h"
#include "train/forest_trainer.h"

namespace tilecast {
namespace {

using Card = Installation::Card;

std::vector<OptionGroup> doctor_groups() { return {{"Options", {}}}; }

/// What a command writes to its standard output; "" where it fails or is missing.
std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      popen(("timeout 10 " + command + " 2> /dev/null").c_str(), "r"), pclose);
  if (!pipe) return "";
  std::string text;
  std::array<char, 4096> part{};
  while (const size_t count = std::fread(part.data(), 1, part.size(), pipe.get()))
    text.append(part.data(), count);
  return text;
}

std::optional<double> scaled(const std::string& text, double factor) {
  const std::optional<double> number = parse_number<double>(trim(text));
  if (!number) return std::nullopt;
  return *number * factor;
}

/// Numbers of the device file that the machine contradicts, and what to do.
void compare(Card& card) {
  const Device* device = nullptr;
  for (const Device& known : bundled_devices()) {
    if (is_named(known, card.name)) device = &known;
  }
  if (device == nullptr) return;
  card.device = device->id;
  const Gpu* gpu = device->as_gpu();
  if (gpu == nullptr) return;
  constexpr double kSame = 0.02;
  if (card.max_clock_hz && std::abs(*card.max_clock_hz / gpu->boost_clock_hz - 1) > kSame)
    card.differences.push_back(fmt::format(
        "its highest clock is {:.0f} MHz, the device file has {:.0f} MHz: forecast with "
        "--clocks {:.0f}",
        *card.max_clock_hz / 1e6, gpu->boost_clock_hz / 1e6, *card.max_clock_hz / 1e6));
  if (card.power_limit_w && std::abs(*card.power_limit_w / gpu->board_power_w - 1) > kSame)
    card.differences.push_back(
        fmt::format("its power limit is {:.0f} W, the device file has {:.0f} W: long matrix "
                    "products run at another clock",
                    *card.power_limit_w, gpu->board_power_w));
  // Drivers keep a part of the memory for themselves.
  constexpr double kDriverShare = 0.08;
  if (card.memory_bytes &&
      std::abs(static_cast<double>(*card.memory_bytes) / static_cast<double>(device->memory_bytes) -
               1) > kDriverShare)
    card.differences.push_back(
        fmt::format("it has {} of memory, the device file has {}: is it a "
                    "MIG slice or another variant?",
                    format_bytes(*card.memory_bytes), format_bytes(device->memory_bytes)));
}

std::vector<Card> nvidia_cards() {
  std::vector<Card> cards;
  const std::string text = output_of(
      "nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.max.sm,power.limit,memory.total "
      "--format=csv,noheader,nounits");
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> cells = split(line, ',');
    constexpr size_t kCells = 6;
    if (cells.size() != kCells) continue;
    constexpr double kMega = 1e6, kMebi = 1 << 20;
    Card card{.name = printable(trim(cells[0])),
              .device = "",
              .driver = printable(trim(cells[1])),
              .clock_hz = scaled(cells[2], kMega),
              .max_clock_hz = scaled(cells[3], kMega),
              .power_limit_w = scaled(cells[4], 1),
              .memory_bytes = {},
              .differences = {}};
    if (const auto bytes = scaled(cells[5], kMebi))
      card.memory_bytes = static_cast<int64_t>(*bytes);
    cards.push_back(std::move(card));
  }
  return cards;
}

/// rocm-smi's JSON: an object for each card, values are texts.
std::vector<Card> amd_cards() {
  std::vector<Card> cards;
  const std::string text =
      output_of("rocm-smi --showproductname --showdriverversion --showmaxpower --json");
  if (text.empty()) return cards;
  const Json all = Json::parse(text, nullptr, false);
  if (!all.is_object()) return cards;
  const std::string driver =
      all.contains("system") ? all["system"].value("Driver version", "") : "";
  for (const auto& item : all.items()) {
    if (!item.key().starts_with("card") || !item.value().is_object()) continue;
    Card card;
    card.name = printable(item.value().value("Card series", item.value().value("Card Series", "")));
    card.driver = printable(driver);
    card.power_limit_w = scaled(item.value().value("Max Graphics Package Power (W)", ""), 1);
    cards.push_back(std::move(card));
  }
  return cards;
}

Installation::WeightsFile weights_file(const EmbeddedFile& file) {
  const WeightsContainer container =
      read_container(file.content, std::string(file.path), Checksum::kVerify);
  Installation::WeightsFile result{.name = std::string(file.path.substr(file.path.rfind('/') + 1)),
                                   .bytes = static_cast<int64_t>(file.content.size()),
                                   .checksum = "",
                                   .trained_on = ""};
  const Json& header = container.header;
  if (header.contains("checksum"))
    result.checksum = fmt::format("{:016x}", header["checksum"].get<uint64_t>());
  if (header.contains("provenance"))
    result.trained_on = header["provenance"].value("data_hash", "");
  return result;
}

/// Whether a library can be loaded: `require` throws if not.
bool is_here(void (*require)()) {
  try {
    require();
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::vector<Installation::Part> optional_parts() {
  std::vector<Installation::Part> parts = {
      {"XGBoost", is_here(require_xgboost), "'tilecast train' loads it; Debian: libxgboost0"},
      {"Cbc", is_here(require_cbc), "'tilecast allocate' loads it; Debian: coinor-libcbc3"},
      {"liblzma", reads_xz(),
       "reads measurements in .xz files; needed when Tilecast is built: liblzma-dev"},
      {"zlib", reads_gzip(),
       "reads profiler traces in .gz files; needed when Tilecast is built: zlib1g-dev"},
      {"SQLite", reads_sqlite(),
       "reads exports of Nsight Systems; needed when Tilecast is built: libsqlite3-dev"}};
  constexpr std::pair<const char*, const char*> kModules[] = {
      {"tilecast", "the Python package: pip install ."},
      {"pandas", "forecast.to_pandas()"},
      {"matplotlib", "forecast.plot()"},
      {"torch", "forecasts of torch.nn.Module: tilecast.torch"},
      {"transformers", "forecasts of its configurations and models"}};
  std::string names;
  for (const auto& [name, use] : kModules)
    names += fmt::format("{}'{}'", names.empty() ? "" : ",", name);
  const std::string found = output_of(fmt::format(
      "python3 -c \"import importlib.util as u; print(*[n for n in [{}] if u.find_spec(n)])\"",
      names));
  const std::vector<std::string> here = split(std::string(trim(found)), ' ');
  for (const auto& [name, use] : kModules) {
    parts.push_back({fmt::format("Python's {}", name),
                     std::find(here.begin(), here.end(), name) != here.end(), use});
  }
  return parts;
}

struct Nothing {};

Reply answer_doctor(Nothing&&, const Given&, const Asking&) {
  Installation here;
  here.version = TILECAST_VERSION;
  for (const EmbeddedFile& file : embedded_files("weights/")) {
    if (file.path.ends_with(".weights")) here.weights.push_back(weights_file(file));
  }
  here.gpus = nvidia_cards();
  for (Card& card : amd_cards()) here.gpus.push_back(std::move(card));
  for (Card& card : here.gpus) compare(card);
  here.hub_cache = printable(hub_cache().string());
  here.hub_models = static_cast<int64_t>(cached_models().size());
  here.parts = optional_parts();
  return {.answer = std::move(here)};
}

}  // namespace

Question doctor_question() {
  return local(question_of<Nothing, doctor_groups, answer_doctor>(
      "doctor", "What is installed here, and the GPUs of this machine", {{"", "Installation"}}));
}

}  // namespace tilecast
