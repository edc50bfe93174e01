#include "accelerator/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "accelerator/fields.h"
#include "accelerator/names.h"
#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast::accelerator {
namespace {

struct Spec {
  std::string name, dataflow;
  ParameterValues values;
};

Spec parse_spec(const std::string& text) {
  Spec spec;
  const size_t colon = text.find(':');
  spec.name = text.substr(0, colon);
  if (colon == std::string::npos) return spec;
  for (const std::string& part : split(text.substr(colon + 1), ',')) {
    const size_t equals = part.find('=');
    const std::string key(trim(part.substr(0, equals)));
    const std::string value(equals == std::string::npos ? "" : trim(part.substr(equals + 1)));
    if (key == "dataflow") {
      spec.dataflow = value;
      continue;
    }
    const auto number = parse_number<double>(value);
    if (!number)
      throw Error(ErrorKind::kInput, fmt::format("{}: expected NAME=NUMBER, found '{}'",
                                                 shown_name(text), shown_name(part)));
    spec.values[key] = *number;
  }
  return spec;
}

/// The bits in the name of a data type: "int8", "bf16", "fp8_e4m3".
int64_t bits_of(const JsonObject& file, const std::string& field) {
  const std::string name = file.string(field);
  const size_t digit = name.find_first_of("0123456789");
  int64_t bits = 0;
  if (digit != std::string::npos && digit > 0)
    std::from_chars(name.data() + digit, name.data() + name.size(), bits);
  if (bits < 1 || bits > 128)
    file.fail(field, "expected a data type with its bits, such as int8, fp16 or int32; found \"" +
                         shown_name(name) + "\"");
  return bits;
}

/// The types that the file states have the bytes of the elements in its buffers.
void check_dtypes(const JsonObject& file, const Dataflow& flow) {
  for (const Operand operand : kOperands) {
    const bool sums = operand == Operand::kOutput;
    const std::string field = sums ? "accumulator_dtype" : "operand_dtype";
    const double found = flow.buffers[static_cast<size_t>(operand)].element_bytes;
    const double expected = static_cast<double>(bits_of(file, field)) / 8;
    if (found == expected) continue;
    file.fail(field,
              fmt::format("{} has {} bytes, but the elements of the buffer of {}s in the "
                          "dataflow '{}' have {}",
                          file.string(field), expected,
                          std::array{"input", "weight", "output"}[static_cast<size_t>(operand)],
                          flow.name, found));
  }
}

}  // namespace

double Design::on_chip_bytes() const {
  double sum = 0;
  for (const Memory& memory : machine.memories)
    if (memory.type == "sram") sum += memory.bytes;
  return sum;
}

Design parse_accelerator(std::string_view text, const std::string& where,
                         const std::string& dataflow, const ParameterValues& values) {
  const Json json = parse_json(text, where);
  const JsonObject file(json, where);
  file.reject_unknown({"schema_version", "kind", "id", "name", "vendor", "aliases", "notes",
                       "clock", "parameters", "objects", "dataflows", "default_dataflow", "host",
                       "operand_dtype", "accumulator_dtype"});
  file.integer({"schema_version"}, 1, 1);
  if (const std::string kind = file.string("kind"); kind != "accelerator")
    file.fail("kind", "expected \"accelerator\", found \"" + shown_name(kind) + "\"");
  Design accelerator{.id = printable(file.string("id")), .name = printable(file.string("name"))};
  accelerator.machine = build_machine(file, values);
  accelerator.flow = read_dataflow(file, accelerator.machine, dataflow);
  check_dtypes(file, accelerator.flow);
  accelerator.operand_dtype = printable(file.string("operand_dtype"));
  accelerator.accumulator_dtype = printable(file.string("accumulator_dtype"));
  if (file.has("host")) {
    const JsonObject host = file.object("host");
    host.reject_unknown({"bytes_per_cycle", "macs_per_cycle"});
    const FieldReader reader(accelerator.machine.parameters);
    accelerator.host =
        Host{.bytes_per_cycle = reader.quantity(host, "bytes_per_cycle", "B/cycle", 1e-6, 1e6)};
    if (host.has("macs_per_cycle"))
      accelerator.host->macs_per_cycle =
          reader.quantity(host, "macs_per_cycle", "MAC/cycle", 1e-6, 1e6);
  }
  return accelerator;
}

Design open_accelerator(const std::string& text, const ParameterValues& values) {
  Spec spec = parse_spec(text);
  for (const auto& [name, value] : values) spec.values[name] = value;
  if (is_path(spec.name))
    return parse_accelerator(read_file(spec.name, kLargestDescription), printable(spec.name),
                             spec.dataflow, spec.values);
  if (const EmbeddedFile* file = find_bundled_accelerator(spec.name))
    return parse_accelerator(file->content, std::string(file->path), spec.dataflow, spec.values);
  const std::vector<std::string>& known = accelerator_names();
  throw Error(
      ErrorKind::kNotFound,
      fmt::format("unknown accelerator '{}'{}; known: {}, or the path of a description",
                  shown_name(spec.name), did_you_mean(spec.name, known), join(known, ", ")));
}

}  // namespace tilecast::accelerator
