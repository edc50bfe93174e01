#pragma once

// How a question ends without an answer: by an error, or at the limits of memory and time that it
// was given. An answer does not depend on these limits, so they are no part of a request.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
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

/// Limits of one question.
struct Limits {
  /// What the question may hold, and what a single part of the work may take (a file once it is
  /// read, a graph, the operations of a step). In Tilecast's program it is what the question's
  /// threads have allocated; in others, by how much the process has grown. Default: each part has a
  /// limit that no known model, trace or cluster comes near.
  std::optional<int64_t> memory_bytes;
  std::optional<double> seconds;  ///< default: none
  /// Whether files that a question names are read. If not, a name is found among the bundled models
  /// and devices only.
  bool files = true;
  /// Where such files lie, links followed; "": anywhere.
  std::string folder;
  /// Another thread sets it to end the question; may be null, else it outlives the question.
  const std::atomic<bool>* cancelled = nullptr;
};

/// Ends a question that reaches its limits. It is no Error: a search that tries many things and
/// counts those that end in an Error does not go on after this.
class LimitReached : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Budget;

/// While it lives, whatever the thread that made it asks keeps to the limits, files that it reads
/// and threads that it starts included. `LimitReached`, or Error{kUnsupported} for a part that is
/// too large, says what was reached, where, and which option allows more. The inner one of two
/// scopes counts.
class LimitScope {
 public:
  explicit LimitScope(const Limits& limits);
  ~LimitScope();
  LimitScope(const LimitScope&) = delete;
  LimitScope& operator=(const LimitScope&) = delete;

 private:
  std::unique_ptr<const Budget> budget_;
  const Budget* before_;
};

}  // namespace tilecast
