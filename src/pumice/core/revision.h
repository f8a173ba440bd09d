// What every output says about the program that made it.
#pragma once

namespace pumice {

const char* version();   // "0.1.0"
const char* revision();  // "3f2a9c1d4b5e", with "-dirty" after uncommitted changes, or "unknown"

}  // namespace pumice
