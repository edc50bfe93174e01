#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tilecast {

/// Letters and digits of `text` in lower case: how names are compared ("NVIDIA A100-PCIE-40GB" and
/// "nvidia a100 pcie 40gb" are one).
std::string normalized_name(std::string_view text);

/// ASCII letters in lower case; all else as it is.
std::string lower_case(std::string text);

/// Up to `limit` of `candidates`, nearest to `name` first; empty where none is near.
std::vector<std::string> nearest_names(std::string_view name,
                                       const std::vector<std::string>& candidates,
                                       size_t limit = 3);

/// "; did you mean 'a', 'b'?" or "" where nothing is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

/// "ResNet-18" of "ResNet-18 16", "gpt2" of "gpt2 #2": a name without a number behind its last
/// space.
std::string without_number(const std::string& name);

/// Text between separators; "a,,b" has three parts, "" has none.
std::vector<std::string> split(std::string_view text, char separator);

std::string join(const std::vector<std::string>& parts, std::string_view separator);

/// `text` without white space at both ends.
std::string_view trim(std::string_view text);

/// `text` as a terminal may show it: control characters (escape, newline, delete, C1 codes, marks
/// that turn the direction of writing) become "\x1b" or "\u202e", bytes that are not UTF-8 "\xff".
/// Whatever comes from a file passes through here before it stands in a message or a table.
std::string printable(std::string_view text);

/// The same for a text of several lines: its newlines and tabs stay.
std::string printable_lines(std::string_view text);

/// A name from a file or the command line, for a message: printable, at most `most` characters; the
/// rest of a longer one is left out ("aaa...").
std::string shown_name(std::string_view text, size_t most = 80);

/// A message of the library as the command line words it: options in backquotes (`batch`) become
/// flags (--batch).
std::string options_as_flags(std::string_view message);

/// "17,042".
std::string format_integer(int64_t value);

/// "17,042", "405", "68.9": a rate or a mean that is not negative, in at least three significant
/// digits. From 1e15 on "1.5e+300".
std::string format_count(double value);

/// "1.25 ms"; three significant digits, unit chosen by size.
std::string format_seconds(double seconds);
/// "Llama-3.1-8B" of "meta-llama--Llama-3.1-8B" and of "meta-llama/Llama-3.1-8B".
std::string without_owner(const std::string& model);

/// "1.50 GiB"; binary units.
std::string format_bytes(int64_t bytes);

/// "12.3 TFLOP" from a count and the unit's name; decimal prefixes.
std::string format_si(double value, std::string_view unit);

}  // namespace tilecast
