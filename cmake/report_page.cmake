# The report's page: its scripts with the part of D3 that they use, bundled by esbuild, and style and frame, embedded
# as C++ strings. Nothing of it is downloaded: D3 comes from Debian's node-d3-* packages.
find_program(ESBUILD_PROGRAM esbuild)
if(NOT ESBUILD_PROGRAM)
  message(FATAL_ERROR "esbuild not found: it bundles the report's page. Debian package: esbuild (tools/install-dependencies installs it)")
endif()
set(PUMICE_D3_MODULES d3-axis d3-contour d3-format d3-scale d3-selection d3-shape)
find_path(NODE_MODULES_DIR d3-scale/package.json PATHS /usr/share/nodejs /usr/local/share/nodejs /usr/local/lib/node_modules
          DOC "Folder with the D3 modules")
foreach(module ${PUMICE_D3_MODULES})
  if(NOT EXISTS ${NODE_MODULES_DIR}/${module}/package.json)
    message(FATAL_ERROR "${module} not found in '${NODE_MODULES_DIR}': it draws the report's figures. Debian package: "
                        "node-${module} (tools/install-dependencies installs it), or give -DNODE_MODULES_DIR=…")
  endif()
endforeach()

set(page_dir ${PROJECT_SOURCE_DIR}/src/pumice/report/page)
set(page_out ${CMAKE_CURRENT_BINARY_DIR}/page)
file(GLOB page_scripts CONFIGURE_DEPENDS ${page_dir}/*.js)
set(esbuild ${CMAKE_COMMAND} -E env NODE_PATH=${NODE_MODULES_DIR} ${ESBUILD_PROGRAM} --log-level=warning --minify)
add_custom_command(OUTPUT ${page_out}/page.js
  COMMAND ${esbuild} ${page_dir}/main.js --bundle --format=iife --target=es2020 --outfile=${page_out}/page.js
  DEPENDS ${page_scripts} VERBATIM)
add_custom_command(OUTPUT ${page_out}/page.css
  COMMAND ${esbuild} ${page_dir}/page.css --charset=utf8 --outfile=${page_out}/page.css
  DEPENDS ${page_dir}/page.css VERBATIM)
set(page_source ${CMAKE_CURRENT_BINARY_DIR}/embedded_page.cpp)
add_custom_command(OUTPUT ${page_source}
  COMMAND ${CMAKE_COMMAND} -DHTML=${page_dir}/page.html -DCSS=${page_out}/page.css -DJS=${page_out}/page.js
          -DOUTPUT=${page_source} -P ${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake
  DEPENDS ${page_dir}/page.html ${page_out}/page.css ${page_out}/page.js
          ${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake
  VERBATIM)
