#pragma once

// The one search for the end of a monotone property, as "fits" or "keeps the limits": it holds up
// to some integer and for none above. Callers that know how the property comes about guess where
// the end is, so that few integers are asked for; each of them may cost a forecast.

#include <algorithm>
#include <cstdint>

namespace tilecast {

/// The property holds at `holds` and fails at `fails`, which is greater.
struct Bracket {
  int64_t holds = 0, fails = 0;

  int64_t middle() const { return holds + (fails - holds) / 2; }
};

/// Narrows a bracket to neighbours, or until `close` of it is true. `guess`: the integer to ask for
/// next; it is moved between both.
template <typename Holds, typename Guess, typename Close>
Bracket narrow(Bracket bracket, Holds&& property, Guess&& guess, Close&& close) {
  while (bracket.fails - bracket.holds > 1 && !close(bracket)) {
    const int64_t at = std::clamp(guess(bracket), bracket.holds + 1, bracket.fails - 1);
    (property(at) ? bracket.holds : bracket.fails) = at;
  }
  return bracket;
}

template <typename Holds, typename Guess>
Bracket narrow(Bracket bracket, Holds&& property, Guess&& guess) {
  return narrow(bracket, property, guess, [](const Bracket&) { return false; });
}

/// By halves.
template <typename Holds>
Bracket narrow(Bracket bracket, Holds&& property) {
  return narrow(bracket, property, [](const Bracket& b) { return b.middle(); });
}

}  // namespace tilecast
