// How many cores are used. Debian's LibTorch starts with one, and OpenBLAS does not listen to it.
#pragma once

namespace pumice {

int available_cores();          // those this process may run on
void set_threads(int threads);  // for LibTorch and OpenBLAS; Error unless 1 … 1024

}  // namespace pumice
