# Flags for our own code only; the headers of LibTorch count as system headers.
add_library(pumice_compile_options INTERFACE)
target_compile_options(pumice_compile_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow=local -Wnon-virtual-dtor -Woverloaded-virtual
  # GCC 12 sees overlaps in std::string's own operator+ that are not there (its bug 105651).
  -Wno-restrict
  $<$<BOOL:${PUMICE_WARNINGS_ARE_ERRORS}>:-Werror>)
if(PUMICE_SANITIZE)
  # vptr needs the type information of LibTorch's classes, which Debian's build does not export.
  set(PUMICE_SANITIZE_FLAGS -fsanitize=address,undefined -fno-sanitize=vptr -fno-omit-frame-pointer)
  target_compile_options(pumice_compile_options INTERFACE ${PUMICE_SANITIZE_FLAGS})
  target_link_options(pumice_compile_options INTERFACE ${PUMICE_SANITIZE_FLAGS})
endif()
