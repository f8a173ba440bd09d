// The sentence that a piece of work is refused with.
#pragma once

#include <functional>
#include <string>

#include "pumice/core/error.h"

namespace pumice::testing {

inline std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace pumice::testing
