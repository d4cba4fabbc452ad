# The ctest `tools.install_after_a_partial_build`: what `./dev train` builds, the library and digits,
# can be installed; nothing else is asked for.
include(${CMAKE_CURRENT_LIST_DIR}/out_of_tree.cmake)

# The install scripts of the build, for a folder that has only what `./dev train` makes.
file(REMOVE_RECURSE ${WORK})
set(partial ${WORK}/build)
file(GLOB_RECURSE scripts RELATIVE ${BUILD} ${BUILD}/cmake_install.cmake)
foreach(script ${scripts})
  file(READ ${BUILD}/${script} text)
  string(REPLACE "${BUILD}" "${partial}" text "${text}")
  file(WRITE ${partial}/${script} "${text}")
endforeach()
file(GLOB made RELATIVE ${BUILD} ${BUILD}/libberth.so* ${BUILD}/lib/libberth.so* ${BUILD}/bin/digits)
foreach(file ${made})
  get_filename_component(folder ${partial}/${file} DIRECTORY)
  file(COPY ${BUILD}/${file} DESTINATION ${folder})
endforeach()
# What configuring made.
file(COPY ${BUILD}/berthConfig.cmake ${BUILD}/berthConfigVersion.cmake ${BUILD}/berth.pc
  ${BUILD}/generated DESTINATION ${partial})
file(COPY ${BUILD}/CMakeFiles/Export DESTINATION ${partial}/CMakeFiles)

run("installing" ${CMAKE_COMMAND} -D CMAKE_INSTALL_PREFIX=${WORK}/prefix
  -P ${partial}/cmake_install.cmake)
file(GLOB_RECURSE library ${WORK}/prefix/*/libberth.so*)
if(NOT library OR NOT EXISTS ${WORK}/prefix/include/berth/berth.h)
  message(FATAL_ERROR "the library or its headers were not installed")
endif()
if(EXISTS ${WORK}/prefix/bin/berth)
  message(FATAL_ERROR "the command line was installed, which was not built")
endif()
file(COPY ${SOURCE}/examples/out_of_tree ${SOURCE}/README.md DESTINATION ${WORK})
run("configuring README's program" ${CMAKE_COMMAND} -G ${GENERATOR} -S ${WORK}/out_of_tree
  -B ${WORK}/program -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_PREFIX_PATH=${WORK}/prefix
  -D BERTH_README=${WORK}/README.md)
