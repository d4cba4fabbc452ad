# `cmake --install` and `find_package(berth)`.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
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
