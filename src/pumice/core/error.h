// The one exception type: the caller's or a file's fault, told in one sentence.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace pumice {

// Says what was wrong, its value and the rule it broke: "train.log:12: rate = -0.1, must be > 0".
// Numerics that did not succeed are told by a summary instead, our own bugs by an assert.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Joins its arguments as operator<< prints them.
template <typename... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(text(parts...));
}

}  // namespace pumice
