# SPDX-License-Identifier: Apache-2.0
# Our libraries, all from Debian 12. One target each, named agbox::<what>.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
# The C++ runtime can be linked statically only if no shared C++ library is left.
set(Boost_USE_STATIC_LIBS ${AGBOX_STATIC_GRPC})
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(GTest REQUIRED)
find_program(PROTOC protoc REQUIRED)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
pkg_check_modules(TOMLPLUSPLUS REQUIRED tomlplusplus)

# Static archives have cyclic references, hence the group. <target>_archives is the list of them.
function(agbox_static_group target)
  set(files "")
  foreach(name IN LISTS ARGN)
    find_library(STATIC_${name} NAMES lib${name}.a REQUIRED)
    list(APPEND files ${STATIC_${name}})
  endforeach()
  list(JOIN files "," joined)
  target_link_libraries(${target} INTERFACE "-Wl,--start-group,${joined},--end-group")
  set(${target}_archives ${files} PARENT_SCOPE)
endfunction()

add_library(agbox_protobuf INTERFACE)
add_library(agbox::protobuf ALIAS agbox_protobuf)
add_library(agbox_grpc INTERFACE)
add_library(agbox::grpc ALIAS agbox_grpc)
add_library(agbox_sqlite INTERFACE)
add_library(agbox::sqlite ALIAS agbox_sqlite)

if(AGBOX_STATIC_GRPC)
  agbox_static_group(agbox_protobuf protobuf z)
  agbox_static_group(agbox_sqlite sqlite3 z)
  pkg_get_variable(_unused grpc++_unsecure libdir)
  execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --static --libs-only-l grpc++_unsecure
                  OUTPUT_VARIABLE grpc_libs OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "-labsl_[a-z0-9_]+" absl_names "${grpc_libs}")
  list(REMOVE_DUPLICATES absl_names)
  list(TRANSFORM absl_names REPLACE "^-l" "")
  agbox_static_group(agbox_grpc grpc++_reflection grpc++_unsecure grpc_unsecure gpr upb address_sorting re2 cares
                     protobuf z ${absl_names})
else()
  target_link_libraries(agbox_protobuf INTERFACE protobuf)
  target_link_libraries(agbox_sqlite INTERFACE sqlite3)
  # Not the _unsecure twins: the reflection library brings libgrpc, and two copies of gRPC's core in one
  # process hang in the first call.
  target_link_libraries(agbox_grpc INTERFACE -Wl,--no-as-needed grpc++_reflection -Wl,--as-needed
                        grpc++ grpc gpr protobuf absl_synchronization absl_status absl_strings absl_base)
endif()
target_link_libraries(agbox_protobuf INTERFACE Threads::Threads)
target_link_libraries(agbox_sqlite INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)
target_link_libraries(agbox_grpc INTERFACE Threads::Threads ${CMAKE_DL_LIBS})

add_library(agbox_asio INTERFACE)
add_library(agbox::asio ALIAS agbox_asio)
target_link_libraries(agbox_asio INTERFACE Boost::headers Threads::Threads)
target_compile_definitions(agbox_asio INTERFACE BOOST_ASIO_NO_DEPRECATED)

# Always static: only a few objects, and the guest is static.
find_library(SODIUM_STATIC NAMES libsodium.a REQUIRED)
add_library(agbox_sodium INTERFACE)
add_library(agbox::sodium ALIAS agbox_sodium)
target_link_libraries(agbox_sodium INTERFACE ${SODIUM_STATIC})

# Always static: only the daemon uses it, and other programs that link the model drop it.
find_library(YAML_STATIC NAMES libyaml.a REQUIRED)
add_library(agbox_yaml INTERFACE)
add_library(agbox::yaml ALIAS agbox_yaml)
target_link_libraries(agbox_yaml INTERFACE ${YAML_STATIC})

# libnftnl is static: only a few objects. Debian has libmnl only as a shared library; programs that do not use it do
# not load it.
find_library(NFTNL_STATIC NAMES libnftnl.a REQUIRED)
find_library(MNL NAMES mnl REQUIRED)
add_library(agbox_nftnl INTERFACE)
add_library(agbox::nftnl ALIAS agbox_nftnl)
target_link_libraries(agbox_nftnl INTERFACE ${NFTNL_STATIC} "-Wl,--push-state,--as-needed,${MNL},--pop-state")
