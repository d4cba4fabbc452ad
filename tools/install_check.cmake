# The ctest `tools.install_find_package`: proves that the installed package is enough to build
# README's program and examples/custom_op outside the tree, and that they run.
include(${CMAKE_CURRENT_LIST_DIR}/out_of_tree.cmake)

install_beside(${SOURCE}/examples/out_of_tree ${SOURCE}/examples/custom_op ${SOURCE}/README.md)
build_in(out_of_tree build -D BERTH_README=${WORK}/README.md)
run("running README's program" ${WORK}/build/readme_program)
find_program(pkg_config pkg-config)
if(pkg_config)
  set(ENV{PKG_CONFIG_PATH} ${WORK}/prefix/lib:${WORK}/prefix/lib/pkgconfig)
  file(GLOB_RECURSE pc ${WORK}/prefix/*/berth.pc)
  run("asking pkg-config" ${pkg_config} --cflags --libs ${pc})
  separate_arguments(flags UNIX_COMMAND "${output}")
  run("building README's program with pkg-config" ${COMPILER} ${WORK}/build/readme_program.cc
    -o ${WORK}/by_pkg_config ${flags})
  run("running it" ${WORK}/by_pkg_config)
endif()
build_in(custom_op custom_op/build)
run("running examples/custom_op" ${WORK}/custom_op/build/custom_op)
# The command line, if it was built, with pages for man and scripts for shells.
if(EXISTS ${WORK}/prefix/bin/berth)
  run("starting the installed berth" ${WORK}/prefix/bin/berth --version)
  foreach(text man/man1/berth.1 man/man1/berth-place.1 bash-completion/completions/berth
      zsh/site-functions/_berth fish/vendor_completions.d/berth.fish)
    file(READ ${WORK}/prefix/share/${text} installed)
    if(NOT installed MATCHES "partition|berth place")
      message(FATAL_ERROR "share/${text} says nothing of berth place:\n${installed}")
    endif()
  endforeach()
endif()
