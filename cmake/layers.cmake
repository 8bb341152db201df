# The first check of the layers: a target of one folder can link a target of another only where
# src/layers.txt allows it. Targets are named after folders: src/wire/shm is carve_wire_shm.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/layers.txt)
file(STRINGS ${PROJECT_SOURCE_DIR}/src/layers.txt rows REGEX "^[a-z]")
foreach(row IN LISTS rows)
  string(REGEX MATCH "^([a-z]+) *:(.*)$" _ "${row}")
  separate_arguments(allowed UNIX_COMMAND "${CMAKE_MATCH_2}")
  set(CARVE_MAY_USE_${CMAKE_MATCH_1} ${allowed} CACHE INTERNAL "")
endforeach()

# carve_uses(TARGET FOLDER USED...): TARGET lives in src/FOLDER and links the libraries of src/USED...
function(carve_uses target folder)
  string(REGEX REPLACE "/.*" "" layer ${folder})
  foreach(used IN LISTS ARGN)
    string(REGEX REPLACE "/.*" "" used_layer ${used})
    if(NOT (used_layer STREQUAL layer OR used IN_LIST CARVE_MAY_USE_${layer}
            OR used_layer IN_LIST CARVE_MAY_USE_${layer}))
      message(FATAL_ERROR "src/${folder} may not use src/${used}: see src/layers.txt")
    endif()
    string(REPLACE "/" "_" used_target ${used})
    target_link_libraries(${target} PUBLIC carve_${used_target})
  endforeach()
endfunction()

# carve_library(FOLDER [SOURCES file...] [USES folder...] [LINKS third-party...])
# Without sources the library is its headers alone.
function(carve_library folder)
  cmake_parse_arguments(arg "" "" "SOURCES;USES;LINKS" ${ARGN})
  string(REPLACE "/" "_" name carve_${folder})
  if(NOT arg_SOURCES)
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR}/src)
    foreach(used IN LISTS arg_USES)
      string(REPLACE "/" "_" used_target ${used})
      target_link_libraries(${name} INTERFACE carve_${used_target})
    endforeach()
    target_link_libraries(${name} INTERFACE ${arg_LINKS})
    return()
  endif()
  add_library(${name} STATIC ${arg_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PUBLIC ${arg_LINKS})
  carve_uses(${name} ${folder} ${arg_USES})
endfunction()

# carve_program(NAME FOLDER SOURCES file... [USES folder...] [LINKS third-party...])
function(carve_program name folder)
  cmake_parse_arguments(arg "" "" "SOURCES;USES;LINKS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE ${arg_LINKS})
  if(NOT CARVE_SANITIZE)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
  carve_uses(${name} ${folder} ${arg_USES})
endfunction()

# carve_test(NAME SOURCES file... [LINKS target...]): one GoogleTest binary, one ctest entry. Its own files are
# not optimized, which takes a third off what they take to compile, with clang more; what it tests is. Up to eight
# are compiled as one unit: a file takes 2.1 s alone, of which GoogleTest's headers are 1.9 s; eight take 5.1 s.
function(carve_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS;LABELS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(${name} PRIVATE -O0 -Wno-shadow)  # One file's locals may have the name of another file's globals.
  target_link_libraries(${name} PRIVATE ${arg_LINKS} GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests
    UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  add_dependencies(tests ${name})
  add_test(NAME ${name} COMMAND ${name})
  # A process under the thread sanitizer waits a second at its end for races; tests have hundreds of processes.
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 120 ENVIRONMENT TSAN_OPTIONS=atexit_sleep_ms=50)
endfunction()

# carve_fuzz(NAME SOURCES file... [LINKS target...]): one LLVMFuzzerTestOneInput. With the preset `asan` it
# is a libFuzzer binary (tests/fuzz/run starts it) and its ctest entry replays the corpus in
# tests/fuzz/corpus/NAME; otherwise the entry also plays a seeded storm of mutations of it.
function(carve_fuzz name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  set(corpus ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
  add_executable(fuzz_${name} EXCLUDE_FROM_ALL ${arg_SOURCES})
  target_include_directories(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(fuzz_${name} PRIVATE ${arg_LINKS})
  set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(CARVE_FUZZ)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    set_property(GLOBAL APPEND PROPERTY CARVE_FUZZERS fuzz_${name})
    add_test(NAME fuzz_${name} COMMAND fuzz_${name} -runs=0 ${corpus})
  else()
    target_sources(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/standalone.cc)
    add_test(NAME fuzz_${name} COMMAND fuzz_${name} ${corpus})
  endif()
  add_dependencies(tests fuzz_${name})
  set_tests_properties(fuzz_${name} PROPERTIES TIMEOUT 120)
endfunction()
