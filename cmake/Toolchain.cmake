# SPDX-License-Identifier: Apache-2.0
# Supported compilers, and the flags of all our files.

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  message(FATAL_ERROR "g++ ${CMAKE_CXX_COMPILER_VERSION} frees temporaries of co_await expressions twice; "
                      "configure with a preset (clang-19) or use g++ 13 or newer")
endif()

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
# With CMAKE_UNITY_BUILD all files of a target are compiled as one: most of the work for a file is in the headers
# of Asio, gRPC and GoogleTest, and their template instantiations.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 0)

option(AGBOX_WERROR "Treat warnings as errors" ON)
set(AGBOX_SANITIZE "" CACHE STRING "Sanitizers for every file, as in -fsanitize=...")

add_library(agbox_compile_options INTERFACE)
target_compile_options(agbox_compile_options INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Wimplicit-fallthrough -Wswitch
  $<$<BOOL:${AGBOX_WERROR}>:-Werror>
  -fno-omit-frame-pointer)
# Reproducible builds: no path of this machine enters an object file.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=build)

if(AGBOX_SANITIZE)
  add_compile_options(-fsanitize=${AGBOX_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${AGBOX_SANITIZE})
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_link_options(-fuse-ld=lld)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # The base directory lets two clones share results.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
