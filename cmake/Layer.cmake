# SPDX-License-Identifier: Apache-2.0
# agbox_layer(<name> SOURCES ... DEPENDS <layers and libraries>): one target per directory of src/.
# scripts/check-layers checks the #include lines.

function(agbox_layer name)
  cmake_parse_arguments(LAYER "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(agbox_${name} STATIC ${LAYER_SOURCES})
  add_library(agbox::${name} ALIAS agbox_${name})
  target_include_directories(agbox_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(agbox_${name} PUBLIC ${LAYER_DEPENDS} PRIVATE agbox_compile_options)
endfunction()

# agbox_link_map(<target>): also writes which objects and which members of which archives are in the program, for
# scripts/package. Only lld writes it in the form that is read there.
function(agbox_link_map target)
  if(AGBOX_STATIC_GRPC AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/link_maps)
    target_link_options(${target} PRIVATE "-Wl,-Map=${CMAKE_BINARY_DIR}/link_maps/${target}.map")
  endif()
endfunction()

# agbox_program(<name> SOURCES ... DEPENDS ...): an executable in build/<preset>/bin.
function(agbox_program name)
  cmake_parse_arguments(PROGRAM "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${PROGRAM_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE ${PROGRAM_DEPENDS} agbox_compile_options)
  if(AGBOX_SMALL)
    # The loader reads every relocation and most of every shared library, so both count as resident.
    target_link_options(${name} PRIVATE -Wl,--gc-sections -Wl,--icf=safe -Wl,-z,pack-relative-relocs
                        -static-libstdc++ -static-libgcc)
  endif()
endfunction()

# All unit test programs, those with threads of our own, and the libFuzzer programs.
add_custom_target(unit_tests)
add_custom_target(threads_tests)
add_custom_target(fuzz_programs)
# The label and name of every program of unit tests, for scripts/lib/unit_tests.py.
set(unit_test_programs ${CMAKE_BINARY_DIR}/unit_test_programs.txt)
file(WRITE ${unit_test_programs} "")

# agbox_test(<name> SOURCES ... DEPENDS ... [THREADS]): a GoogleTest program; each TEST is a CTest test. THREADS: it
# has threads of our own below gRPC, for ThreadSanitizer.
function(agbox_test name)
  cmake_parse_arguments(CASE "THREADS" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${CASE_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${CASE_DEPENDS} GTest::gmock GTest::gtest_main agbox_compile_options)
  target_compile_definitions(${name} PRIVATE AGBOX_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set(label unit)
  add_dependencies(unit_tests ${name})
  if(CASE_THREADS)
    set(label unit-threads)  # `ctest -L` takes patterns: "unit" means this too
    add_dependencies(threads_tests ${name})
  endif()
  file(APPEND ${unit_test_programs} "${label} ${name}\n")
  # Only when they are to run: a build does not start every program that it made.
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60 DISCOVERY_MODE PRE_TEST
                       PROPERTIES LABELS ${label} TIMEOUT 300)
endfunction()
include(GoogleTest)
