# How a room's library, a program and a test are declared; flags that hold for all of them.

add_compile_options(-Wall -Wextra -Wshadow -Wno-restrict -Wno-array-bounds
    -Wno-stringop-overflow -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
if(TETRAD_WERROR)
  add_compile_options(-Werror)
endif()
if(TETRAD_SANITIZE)
  add_compile_options(-fsanitize=${TETRAD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TETRAD_SANITIZE})
endif()

find_program(TETRAD_CCACHE ccache)
if(TETRAD_CCACHE)
  # The bytes of a precompiled header differ from build to build; ccache takes the sum beside it in their place.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1 ${TETRAD_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# Catch2's programs are compiled without optimization: half of the time that they take is the compiler's.
set(tetrad_test_flags -O0)

# Two precompiled headers of the standard library and fmt, the second one with Catch2, nothing of ours. Every file
# compiles without them.
function(tetrad_precompiled_header name)
  file(WRITE ${CMAKE_BINARY_DIR}/${name}.cc "")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cc)
  target_link_libraries(${name} PRIVATE fmt::fmt)
  target_precompile_headers(${name} PRIVATE ${ARGN}
    <algorithm> <array> <charconv> <chrono> <coroutine> <cstdint> <deque> <expected> <functional> <limits> <map> <memory>
    <optional> <set> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
  file(GLOB_RECURSE headers /usr/include/fmt/*.h /usr/include/catch2/*.hpp)
  set(sum "${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_CXX_FLAGS} ${TETRAD_SANITIZE} ${ARGN}")
  foreach(header ${headers})
    file(SHA256 ${header} digest)
    string(APPEND sum " ${digest}")
  endforeach()
  file(WRITE ${CMAKE_BINARY_DIR}/CMakeFiles/${name}.dir/cmake_pch.hxx.gch.sum "${sum}\n")
endfunction()

# Sources that may stand in one file are compiled as one (unity_groups.py says which): headers are read, and templates
# instantiated, once for each group. Who works on a few files turns it off.
if(TETRAD_UNITY)
  add_compile_options(-Wno-subobject-linkage)  # a source that another file includes is taken for a header
  add_compile_options(-Wno-stringop-overread -Wno-maybe-uninitialized)  # false alarms where more is inlined
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  execute_process(COMMAND ${Python3_EXECUTABLE} tools/cmake/unity_groups.py base partitioner storage replication cql server tools
      tests WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_FILE ${CMAKE_BINARY_DIR}/unity_groups.cmake COMMAND_ERROR_IS_FATAL ANY)
  include(${CMAKE_BINARY_DIR}/unity_groups.cmake)
endif()

function(tetrad_unity target)
  if(TETRAD_UNITY)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "[.]cc$")
    foreach(source ${sources})
      file(REAL_PATH ${source} path)
      file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR} ${path})
      if(DEFINED TETRAD_UNITY_${path})
        set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${TETRAD_UNITY_${path}})
      endif()
    endforeach()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  endif()
endfunction()

# Said of each target once it has its sources.
function(tetrad_precompile target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_precompile_headers(${target} REUSE_FROM tetrad_precompiled${ARGN})
  endif()
  tetrad_unity(${target})
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
  if(TETRAD_SANITIZE)  # only tests are run then, or the program that is asked for
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  endif()
  tetrad_precompile(${name})
endfunction()

# tetrad_test(name SOURCES ... DEPS ...): a Catch2 program and one ctest entry for the whole of it.
function(tetrad_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} Catch2::Catch2WithMain)
  target_compile_options(${name} PRIVATE ${tetrad_test_flags})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  tetrad_precompile(${name} _catch2)
  add_test(NAME ${name} COMMAND ${name})
endfunction()

# tetrad_simulation(name SOURCES ... DEPS ...): a program on simulated nodes, in which known mistakes can be switched on.
function(tetrad_simulation name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES} $<TARGET_OBJECTS:data_mutants>)
  target_compile_definitions(${name} PRIVATE TETRAD_DATA_MUTANTS)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} tetrad_replication tetrad_malloc)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  tetrad_precompile(${name})
endfunction()
