#include "cli/program.h"

#include <string>
#include <vector>

#include "bindings/bindings.h"

namespace tilecast::python {

void add_program(py::module_& module) {
  module.def(
      "_run_program",
      [](std::vector<std::string> words) {
        std::vector<char*> argv;
        argv.reserve(words.size() + 1);
        for (std::string& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        return run_program(static_cast<int>(words.size()), argv.data());
      },
      py::arg("words"), py::call_guard<py::gil_scoped_release>(),
      "The program `tilecast`: runs its command line and returns the exit status.");
}

}  // namespace tilecast::python
