// How the process deals with memory.
#pragma once

#include <cstdint>
#include <string>

namespace pumice {

// Keeps freed memory for the next allocation of the same kind instead of giving it back to the
// system. Training allocates the same few large tensors in every step; handing them back costs a
// page fault for every 4 KiB, a tenth to a fifth of the time. Blocks above 32 MiB are given back all
// the same: they are few, and would leave holes. Call once, from main.
void keep_freed_memory();

// Gives freed memory back once: between two phases whose large blocks differ in size, or the second
// would come on top of what the first left in pieces.
void release_freed_memory();

// Bytes that this process could still take without pushing others out: what the system calls
// available, or what its control group has left, whichever is less. Throws Error where neither can
// be read.
std::int64_t available_memory();

std::string bytes_text(double bytes);  // "1.5 GiB", "320 MiB", "12 KiB"
// "1500000000", "2G", "1.5 GiB", "800M": powers of 1024. Throws Error for anything else.
std::int64_t parse_bytes(const std::string& text);

}  // namespace pumice
