# SPDX-License-Identifier: Apache-2.0
# cmake --install build/release --component sdk: headers, library, CMake package and pkg-config file. The library holds
# gRPC and protobuf, so it needs the static ones.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# lld has no --force-group-allocation.
find_program(GNU_LINKER ld.bfd REQUIRED)
find_program(READELF readelf REQUIRED)

set(archives "")
foreach(target agbox_sdk agbox_api_grpc agbox_api agbox_api_errors agbox_paths agbox_base)
  list(APPEND archives $<TARGET_FILE:${target}>)
endforeach()
list(APPEND archives ${agbox_grpc_archives})
list(JOIN archives "," joined)
set(library ${CMAKE_CURRENT_BINARY_DIR}/libagbox.a)
add_custom_command(OUTPUT ${library}
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${library} -DCLIENT=$<TARGET_FILE:agbox_client> -DARCHIVES=${joined}
          -DLINKER=${GNU_LINKER} -DOBJCOPY=${CMAKE_OBJCOPY} -DREADELF=${READELF} -DAR=${CMAKE_AR}
          -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/prelink.cmake
  DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cmake/prelink.cmake
          agbox_client agbox_sdk agbox_api_grpc agbox_api agbox_api_errors agbox_paths agbox_base
  COMMENT "Linking the C++ SDK into one object" VERBATIM)
add_custom_target(agbox_installed_client ALL DEPENDS ${library})

install(FILES ${library} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT sdk)
list(TRANSFORM installed_headers PREPEND include/agbox/)
install(FILES ${installed_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/agbox COMPONENT sdk)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/agbox)
configure_package_config_file(cmake/agboxConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/agboxConfig.cmake
  INSTALL_DESTINATION ${package} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/agboxConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/agboxConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/agboxConfigVersion.cmake
  DESTINATION ${package} COMPONENT sdk)

file(RELATIVE_PATH AGBOX_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/agbox.pc.in ${CMAKE_CURRENT_BINARY_DIR}/agbox.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/agbox.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT sdk)
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples/cpp COMPONENT sdk)
