# The ctest `tools.install_find_package`: proves that the installed package is enough to build
# README's program and examples/custom_op outside the tree, and that they run.
foreach(name BUILD SOURCE GENERATOR COMPILER WORK)
  if(NOT ${name})
    message(FATAL_ERROR "install_check.cmake needs -D ${name}=...")
  endif()
endforeach()

function(run what)
  message(STATUS "${what}")
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
    ERROR_VARIABLE output TIMEOUT 500)
  message(STATUS "${output}")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what}: failed (${status})")
  endif()
endfunction()

# A copy, so that nothing of the source tree can be found by a relative path.
file(REMOVE_RECURSE ${WORK})
file(COPY ${SOURCE}/examples/out_of_tree ${SOURCE}/examples/custom_op ${SOURCE}/README.md
  DESTINATION ${WORK})
run("installing" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run("configuring README's program" ${CMAKE_COMMAND} -G ${GENERATOR} -S ${WORK}/out_of_tree
  -B ${WORK}/build -D CMAKE_BUILD_TYPE=Release -D CMAKE_CXX_COMPILER=${COMPILER}
  -D CMAKE_PREFIX_PATH=${WORK}/prefix -D BERTH_README=${WORK}/README.md)
run("building README's program" ${CMAKE_COMMAND} --build ${WORK}/build)
run("running README's program" ${WORK}/build/readme_program)

run("configuring examples/custom_op" ${CMAKE_COMMAND} -G ${GENERATOR} -S ${WORK}/custom_op
  -B ${WORK}/custom_op/build -D CMAKE_BUILD_TYPE=Release -D CMAKE_CXX_COMPILER=${COMPILER}
  -D CMAKE_PREFIX_PATH=${WORK}/prefix)
run("building examples/custom_op" ${CMAKE_COMMAND} --build ${WORK}/custom_op/build)
run("running examples/custom_op" ${WORK}/custom_op/build/custom_op)
