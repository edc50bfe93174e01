#pragma once

#include <stdexcept>
#include <string>

namespace tilecast {

/// Kind of an error, so that a program can react to it.
enum class ErrorKind {
  kInput,        ///< a file or an argument does not make sense
  kNotFound,     ///< no such file, device, model or operator
  kUnsupported,  ///< understood, but not something Tilecast can forecast
  kIo,           ///< the operating system refused to read or write
  kInternal,     ///< a bug in Tilecast
};

/// Thrown when a request cannot be fulfilled. `what()` says where, what was expected, what was
/// found and what to do.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace tilecast
