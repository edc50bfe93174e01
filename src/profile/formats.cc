#include "profile/formats.h"

#include <memory>

#include "base/fail.h"
#include "base/file.h"
#include "base/text.h"

namespace tilecast {
namespace {

ProfilerTrace assigned(ProfilerTrace trace) {
  assign_operators(trace);
  if (trace.format == TraceFormat::kNsight) type_by_kernels(trace);
  return trace;
}

}  // namespace

ProfilerTrace read_profiler_trace(const std::filesystem::path& path) {
  const std::string name = printable(path.string());
  if (path.extension() == ".nsys-rep" || path.extension() == ".qdrep")
    fail_input(name, "a report of Nsight Systems: export it by `nsys export --type sqlite`");
  constexpr uint64_t kMagicBytes = 16;
  if (is_sqlite(read_file_start(path, kMagicBytes)))
    return assigned(read_nsight_trace(SqliteFile::open(path), name));
  const std::unique_ptr<TextSource> source = open_text(path);
  return assigned(read_json_trace(*source, name));
}

ProfilerTrace parse_profiler_trace(std::string_view content, const std::string& name) {
  if (is_sqlite(content))
    return assigned(read_nsight_trace(SqliteFile::of_memory(content, name), name));
  const std::unique_ptr<TextSource> source = text_of_memory(content, name);
  return assigned(read_json_trace(*source, name));
}

}  // namespace tilecast
