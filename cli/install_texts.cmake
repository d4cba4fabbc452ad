# Installs pages for man and scripts for shells, as the program `berth` prints them. `share` and
# `man`: where to.
if(EXISTS "${berth}")
  message(STATUS "Installing: ${man}/berth*.1, completion for bash, zsh and fish")
  execute_process(COMMAND "${berth}" man --directory "${man}" COMMAND_ERROR_IS_FATAL ANY)
  foreach(place bash-completion/completions/berth zsh/site-functions/_berth
      fish/vendor_completions.d/berth.fish)
    string(REGEX MATCH "^[a-z]*" shell ${place})
    string(REPLACE "-completion" "" shell ${shell})
    cmake_path(GET place PARENT_PATH folder)
    file(MAKE_DIRECTORY "${share}/${folder}")
    execute_process(COMMAND "${berth}" completion ${shell} OUTPUT_FILE "${share}/${place}"
      COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endif()
