# The headers of src/op with which users register ops are installed as berth/op/*.h, behind
# berth/custom_op.h. They are the same files but for their #include lines.
set(BERTH_OP_HEADERS attrs infer kernel op_def op_registry)
set(folder ${CMAKE_CURRENT_BINARY_DIR}/generated/include)
foreach(name ${BERTH_OP_HEADERS})
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/src/op/${name}.h)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(READ ${source} text)
  string(REPLACE "#include \"op/" "#include \"berth/op/" text "${text}")
  file(CONFIGURE OUTPUT ${folder}/berth/op/${name}.h CONTENT "@text@" @ONLY)
endforeach()
target_include_directories(berth PUBLIC $<BUILD_INTERFACE:${folder}>)
