# The ctest `backend.plugin_out_of_tree`: the skeleton, copied out of the tree and built against an
# installed Berth, is opened, passes the device suite and the ops, trains, and is refused by a
# library with other headers.
include(${CMAKE_CURRENT_LIST_DIR}/out_of_tree.cmake)

install_beside(${SOURCE}/src/backends/skeleton)
build_in(skeleton build)
set(plugin ${WORK}/build/libberth_skeleton.so)
set(with ${CMAKE_COMMAND} -E env BERTH_PLUGINS=${plugin} BERTH_SKELETON=1)
run("device suite" ${with} ${BUILD}/bin/device_suite --device=/device:SKELETON:0 --gtest_brief=1)
run("ops" ${with} ${BUILD}/bin/conformance --device=/device:SKELETON:0 --gtest_brief=1
  --gtest_filter=test.*)
run("training" ${with} ${WORK}/build/skeleton_train)

execute_process(COMMAND ${CMAKE_COMMAND} -E env BERTH_PLUGINS=${plugin} BERTH_SKELETON=2
  ${BUILD}/bin/berth devices RESULT_VARIABLE status ERROR_VARIABLE output)
if(NOT status EQUAL 2 OR NOT output MATCHES "BERTH_SKELETON")
  message(FATAL_ERROR "BERTH_SKELETON=2: exit code ${status}: ${output}")
endif()

build_in(skeleton other "-DCMAKE_CXX_FLAGS=-DBERTH_BUILD_ID=\\\"other\\\"")
run("a plug-in of another build" ${CMAKE_COMMAND} -E env
  BERTH_PLUGINS=${WORK}/other/libberth_skeleton.so ${BUILD}/bin/berth devices --why)
if(NOT output MATCHES "build id other")
  message(FATAL_ERROR "a plug-in of another build was not refused with its build id")
endif()
