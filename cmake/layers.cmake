# The first check of the layers: a target of one folder can link a target of another only if src/layers.txt allows it.
# A target has the name of its folder: src/wire/shm is carve_wire_shm.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/layers.txt)
unset(CARVE_LAYERS CACHE)
file(STRINGS ${PROJECT_SOURCE_DIR}/src/layers.txt rows REGEX "^[a-z]")
foreach(row IN LISTS rows)
  string(REGEX MATCH "^([a-z/]+) *:(.*)$" _ "${row}")
  separate_arguments(allowed UNIX_COMMAND "${CMAKE_MATCH_2}")
  list(APPEND CARVE_LAYERS ${CMAKE_MATCH_1})
  set(CARVE_MAY_USE_${CMAKE_MATCH_1} ${allowed} CACHE INTERNAL "")
endforeach()
set(CARVE_LAYERS ${CARVE_LAYERS} CACHE INTERNAL "")

# carve_layer(FOLDER OUT): returns the longest row of src/layers.txt whose path is a prefix of the folder.
function(carve_layer folder out)
  while(NOT folder IN_LIST CARVE_LAYERS)
    if(NOT folder MATCHES "/")
      message(FATAL_ERROR "src/${folder} has no row in src/layers.txt")
    endif()
    string(REGEX REPLACE "/[^/]*$" "" folder ${folder})
  endwhile()
  set(${out} ${folder} PARENT_SCOPE)
endfunction()

# carve_uses(TARGET FOLDER USED...): TARGET is in src/FOLDER and links the libraries of src/USED...
function(carve_uses target folder)
  carve_layer(${folder} layer)
  foreach(used IN LISTS ARGN)
    carve_layer(${used} used_layer)
    if(NOT (used_layer STREQUAL layer OR used_layer IN_LIST CARVE_MAY_USE_${layer}))
      message(FATAL_ERROR "src/${folder} may not use src/${used}: see src/layers.txt")
    endif()
    string(REPLACE "/" "_" used_target ${used})
    target_link_libraries(${target} PUBLIC carve_${used_target})
  endforeach()
endfunction()

# The folders whose speed `./bench` measures. In an optimized build the others are compiled with -O1, which takes
# 30 % less of the compiler's time.
set(CARVE_FAST_FOLDERS abi base bill core fleet guest kubernetes/api kubernetes/coordinator kubernetes/format
  ledger node os place share sim sqlite wire workload)

# carve_optimization(TARGET FOLDER): how far the compiler optimizes a library or program of src/FOLDER.
function(carve_optimization target folder)
  string(REGEX MATCH "^[^/]*" top ${folder})
  string(REGEX MATCH "^[^/]*/?[^/]*" pair ${folder})
  if(top IN_LIST CARVE_OPTIMIZED_FOLDERS OR
     (CMAKE_BUILD_TYPE STREQUAL RelWithDebInfo AND NOT (top IN_LIST CARVE_FAST_FOLDERS OR pair IN_LIST CARVE_FAST_FOLDERS)))
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# carve_library(FOLDER [SOURCES file...] [USES folder...] [LINKS third-party...]): a library; header-only
# without SOURCES.
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
  carve_optimization(${name} ${folder})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PUBLIC ${arg_LINKS})
  carve_uses(${name} ${folder} ${arg_USES})
endfunction()

# carve_program(NAME FOLDER SOURCES file... [USES folder...] [LINKS third-party...])
function(carve_program name folder)
  cmake_parse_arguments(arg "" "" "SOURCES;USES;LINKS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  carve_optimization(${name} ${folder})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE ${arg_LINKS})
  if(NOT CARVE_SANITIZE)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
  carve_uses(${name} ${folder} ${arg_USES})
endfunction()

# carve_generated(PROGRAM FILE ARGUMENT...): writes the output of `PROGRAM ARGUMENT...` to the file and
# installs it.
function(carve_generated program file)
  set(made ${CMAKE_BINARY_DIR}/${file})
  get_filename_component(made_folder ${made} DIRECTORY)
  file(MAKE_DIRECTORY ${made_folder})
  add_custom_command(OUTPUT ${made} COMMAND ${program} ${ARGN} > ${made} DEPENDS ${program})
  string(REPLACE "/" "_" target generated_${file})
  add_custom_target(${target} ALL DEPENDS ${made})
  get_filename_component(folder ${file} DIRECTORY)
  install(FILES ${made} DESTINATION ${folder})
endfunction()

# carve_unit(UNIT): installs deploy/UNIT.in with the paths of the installation prefix, which `cmake --install
# --prefix` may change.
function(carve_unit unit)
  configure_file(${PROJECT_SOURCE_DIR}/deploy/${unit}.in ${PROJECT_BINARY_DIR}/deploy/${unit} @ONLY)
  set(installed ${PROJECT_BINARY_DIR}/deploy/installed/${unit})
  install(CODE "set(CMAKE_INSTALL_FULL_BINDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
  configure_file(${PROJECT_SOURCE_DIR}/deploy/${unit}.in ${installed} @ONLY)")
  install(FILES ${installed} DESTINATION lib/systemd/system)
endfunction()

# carve_test(NAME SOURCES file... [LINKS target...]): one GoogleTest binary, one ctest entry. The test files
# are not optimized, which saves a third of their compile time, and more with clang; the tested code is
# optimized. Up to eight files are compiled as one unit: one file takes 2.1 s, of which GoogleTest's headers
# take 1.9 s; eight together take 5.1 s.
function(carve_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS;LABELS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(${name} PRIVATE -O0 -Wno-shadow)  # A local may shadow another file's global.
  target_link_libraries(${name} PRIVATE ${arg_LINKS} GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests
    UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  add_dependencies(tests ${name})
  add_test(NAME ${name} COMMAND ${name})
  # A process under the thread sanitizer waits one second for races at its end, and tests have hundreds of processes.
  set(timeout 120)
  if(CARVE_SANITIZE)
    set(timeout 900)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${timeout} ENVIRONMENT TSAN_OPTIONS=atexit_sleep_ms=50)
endfunction()

# carve_fuzz(NAME SOURCES file... [LINKS target...]): a fuzz target. With the preset `asan` it is a libFuzzer
# binary (tests/fuzz/run starts it) and its ctest entry replays the corpus in tests/fuzz/corpus/NAME;
# otherwise the entry also runs seeded mutations of it.
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
