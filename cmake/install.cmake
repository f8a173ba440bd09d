# cmake --install: the tool, the library, its headers, and a package for find_package(pumice).
include(CMakePackageConfigHelpers)

install(TARGETS pumice_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS pumice pumice_plain EXPORT pumiceTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY src/pumice/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/pumice
        FILES_MATCHING PATTERN "*.h" PATTERN "cli" EXCLUDE)
# Protocols name their bodies as ../weights/FILE: the two stay side by side.
install(DIRECTORY weights protocols DESTINATION ${CMAKE_INSTALL_DATADIR}/pumice)
install(EXPORT pumiceTargets NAMESPACE pumice:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pumice)
configure_package_config_file(cmake/pumiceConfig.cmake.in ${CMAKE_BINARY_DIR}/pumiceConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pumice)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/pumiceConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/pumiceConfig.cmake ${CMAKE_BINARY_DIR}/pumiceConfigVersion.cmake
              cmake/dependencies.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pumice)
