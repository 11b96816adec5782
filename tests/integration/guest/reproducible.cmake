# SPDX-License-Identifier: Apache-2.0
# Builds the guest once more, in another directory, with another build type and without a cache, and
# compares: cmake -DSOURCE=... -DBUILT=... -DDIRECTORY=... -DC=... -DCXX=... -P reproducible.cmake
set(ENV{CCACHE_DISABLE} 1)
file(REMOVE_RECURSE ${DIRECTORY})
set(build ${DIRECTORY}/deeper/build)
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${build} -G Ninja -DCMAKE_BUILD_TYPE=MinSizeRel
          -DCMAKE_C_COMPILER=${C} -DCMAKE_CXX_COMPILER=${CXX} -DAGBOX_BELOW_RPC_ONLY=ON
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${build} --target agbox-guest -j2
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(SHA256 ${BUILT} first)
file(SHA256 ${build}/bin/agbox-guest second)
file(REMOVE_RECURSE ${DIRECTORY})
if(NOT first STREQUAL second)
  message(FATAL_ERROR "two build directories gave two guests: ${first} and ${second}")
endif()
