// Runs a fuzz target on the files of folders, once each: the seeds stay tested where there is no
// libFuzzer.
//   corpus_mappings tests/fuzz/mappings
//   corpus_onnx --all tests/fuzz/onnx    fails unless the target accepts every file: a seed that is
//                                        refused at its start tests nothing

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

extern "C" {
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
/// For targets that count what they accept.
extern int fuzz_accepted __attribute__((weak));
}

int main(int argc, char** argv) {
  int files = 0;
  bool all = false;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--all") {
      all = true;
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string content{std::istreambuf_iterator<char>(in), {}};
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(content.data()), content.size());
      ++files;
    }
  }
  std::printf("%d files", files);
  if (&fuzz_accepted != nullptr) std::printf(", %d accepted", fuzz_accepted);
  std::printf("\n");
  const bool complete = !all || (&fuzz_accepted != nullptr && fuzz_accepted == files);
  return files > 0 && complete ? 0 : 1;
}
