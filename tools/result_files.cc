// Writes what is made of the tables of results and warnings: JSON schemas, Python's stubs and the
// reference pages.
//
//   result_files ROOT          writes the files of the project in ROOT
//   result_files ROOT --check  says which of them are not current; exit status 1 if one is not

#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/file.h"
#include "command/python_stubs.h"
#include "many/sweep_spec_schema.h"
#include "schema/json_schema.h"
#include "schema/stubs.h"
#include "schema/warning_table.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// The stubs with their hand-written head.
std::string stubs_of(const std::string& path) {
  const std::string old = read_file(path);
  const size_t marker = old.find(kStubsMarker);
  if (marker == std::string::npos)
    throw Error(ErrorKind::kInput, path + ": the line that the results follow is missing");
  const std::string head = old.substr(0, marker + kStubsMarker.size());
  const std::string classes = head + result_stubs(head);
  return classes + question_stubs(classes);
}

int run(const std::string& root, bool check) {
  int status = 0;
  const auto file = [&](const std::string& name, const std::string& text) {
    const std::string path = root + "/" + name;
    if (!check) return write_file(path, text);
    if (std::filesystem::exists(path) && read_file(path) == text) return;
    fmt::print("{} is not current: run tools/generate.sh\n", name);
    status = 1;
  };
  for (const ResultDef& result : results())
    file(fmt::format("docs/schema/{}.schema.json", result.name), json_schema(result));
  file("docs/schema/sweep_spec.schema.json", sweep_spec_schema());
  file("docs/reference/results.md", result_reference());
  file("docs/reference/warnings.md", warning_reference());
  const std::string stubs = "python/tilecast/_core.pyi";
  file(stubs, stubs_of(root + "/" + stubs));
  return status;
}

}  // namespace
}  // namespace tilecast

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fmt::print(stderr, "usage: result_files ROOT [--check]\n");
    return 2;
  }
  try {
    return tilecast::run(argv[1], argc == 3 && std::string_view(argv[2]) == "--check");
  } catch (const std::exception& error) {
    fmt::print(stderr, "result_files: {}\n", error.what());
    return 1;
  }
}
