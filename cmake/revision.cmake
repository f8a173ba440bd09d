# Writes OUTPUT, a C++ file with the revision of the sources, and leaves it alone if nothing changed.
execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=12
                OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
                RESULT_VARIABLE failed)
if(failed OR revision STREQUAL "")
  set(revision "unknown")
endif()
set(text "#include \"pumice/core/revision.h\"\n\nnamespace pumice {\nconst char* revision() { return \"${revision}\"; }\nconst char* version() { return \"${VERSION}\"; }\n}  // namespace pumice\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} previous)
endif()
if(NOT "${previous}" STREQUAL "${text}")
  file(WRITE ${OUTPUT} "${text}")
endif()
