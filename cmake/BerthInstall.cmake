# `cmake --install`, `find_package(berth)` and `pkg-config berth`. What was not built, such as the
# command line after ./dev train, is left out.
include(CMakePackageConfigHelpers)
target_compile_features(berth INTERFACE cxx_std_20)
install(TARGETS berth EXPORT berthTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/berth DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/generated/include/berth
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT berthTargets NAMESPACE berth:: FILE berthTargets.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/berth)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/berthConfig.cmake
  "include(\"\${CMAKE_CURRENT_LIST_DIR}/berthTargets.cmake\")\n")
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/berthConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/berthConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/berthConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/berth)
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/berth.pc CONTENT
"prefix=\${pcfiledir}/../..
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: berth
Description: @PROJECT_DESCRIPTION@
Version: @PROJECT_VERSION@
Cflags: -std=c++20 -I\${includedir}
Libs: -L\${libdir} -Wl,-rpath,\${libdir} -lberth
" @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/berth.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
