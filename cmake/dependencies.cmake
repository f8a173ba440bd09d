# Everything that Pumice links against; shared with the installed package (pumiceConfig.cmake), so that
# the two lists cannot drift apart. Debian package names: tools/install-dependencies.
find_package(Torch REQUIRED)
# at::parallel_for is a header template: compiled without OpenMP it silently runs on one thread.
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(nlohmann_json 3.9 REQUIRED)
find_package(CLI11 2 REQUIRED)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(LibArchive REQUIRED)
find_package(CURL REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)
pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)
# Debian's libsvm has neither a CMake package nor a pkg-config file.
find_path(LIBSVM_INCLUDE_DIR svm.h PATH_SUFFIXES libsvm REQUIRED)
find_library(LIBSVM_LIBRARY svm REQUIRED)
if(NOT TARGET LibSVM::LibSVM)
  add_library(LibSVM::LibSVM UNKNOWN IMPORTED)
  set_target_properties(LibSVM::LibSVM PROPERTIES
    IMPORTED_LOCATION ${LIBSVM_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${LIBSVM_INCLUDE_DIR})
endif()
# Only headers, and only for the declarations: LibTorch brings the library that it was built with.
find_path(GLOO_INCLUDE_DIR gloo/transport/device.h REQUIRED)
# toml++ is read by one file, header-only: its package would add definitions that the precompiled header lacks.
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
