# How a room's library, a program and a test are declared; flags that hold for all of them.

add_compile_options(-Wall -Wextra -Wshadow -Wno-restrict -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
if(TETRAD_WERROR)
  add_compile_options(-Werror)
endif()
if(TETRAD_SANITIZE)
  add_compile_options(-fsanitize=${TETRAD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TETRAD_SANITIZE})
endif()

# ccache and a precompiled header exclude each other: the header's bytes differ from build to build, so
# nothing that uses it is ever found again. With ccache (warm builds) no header; without it (the first build
# of a stranger) the header.
find_program(TETRAD_CCACHE ccache)
if(TETRAD_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      ${TETRAD_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

function(tetrad_precompile target)
  if(TETRAD_CCACHE)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE
    <algorithm> <array> <chrono> <coroutine> <cstdint> <expected> <functional> <map> <memory> <optional> <set> <span>
    <string> <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
endfunction()

# tetrad_library(name SOURCES a.cc ... DEPS libraries whose headers this one's headers show PRIVATE_DEPS the others)
function(tetrad_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(tetrad_${name} STATIC ${ARG_SOURCES})
  target_include_directories(tetrad_${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(tetrad_${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  if(TETRAD_SANITIZE STREQUAL thread AND "Boost::headers" IN_LIST ARGN)
    target_compile_options(tetrad_${name} PRIVATE -Wno-tsan)  # Asio's fences, which add to its locks
  endif()
  tetrad_precompile(tetrad_${name})
endfunction()

# tetrad_program(name SOURCES ... DEPS ...)
function(tetrad_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  tetrad_precompile(${name})
endfunction()

# tetrad_test(name SOURCES ... DEPS ...): a Catch2 program and one ctest entry for the whole of it.
function(tetrad_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} Catch2::Catch2WithMain)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  tetrad_precompile(${name})
  add_test(NAME ${name} COMMAND ${name})
endfunction()
