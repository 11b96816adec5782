# SPDX-License-Identifier: Apache-2.0
# The Debian package of an installed tree, for scripts/package, which defines:
#   CPACK_INSTALLED_DIRECTORIES      the tree, and / for where it goes
#   CPACK_PACKAGE_VERSION, CPACK_DEBIAN_PACKAGE_ARCHITECTURE, CPACK_PACKAGE_DIRECTORY
# The package depends on the tree and SOURCE_DATE_EPOCH alone, so two builds have the same bytes.

set(CPACK_GENERATOR DEB)
set(CPACK_CMAKE_GENERATOR Ninja)
set(CPACK_PACKAGE_NAME agents-sandbox)
set(CPACK_PACKAGE_VENDOR agents-sandbox)
set(CPACK_PACKAGE_CONTACT "agents-sandbox maintainers <agents-sandbox@users.noreply.github.com>")
set(CPACK_PACKAGE_HOMEPAGE_URL https://github.com/1996fanrui/agents-sandbox)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "run coding agents in isolated sandboxes on your own machine")
set(CPACK_PACKAGE_DESCRIPTION
"The daemon agboxd manages Docker containers as sandboxes: each has a lifecycle,
a durable event history and its own firewall. The command line agbox and any
gRPC client control it over a Unix socket. It runs as an ordinary user, one
daemon for each, and does not listen on the network.")

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # what the programs load
set(CPACK_DEBIAN_PACKAGE_DEPENDS libcap2-bin)  # setcap, for postinst
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "docker.io (>= 20.10) | docker-ce")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${CMAKE_CURRENT_LIST_DIR}/postinst ${CMAKE_CURRENT_LIST_DIR}/prerm ${CMAKE_CURRENT_LIST_DIR}/postrm
  ${CMAKE_CURRENT_LIST_DIR}/triggers)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# Not the umask of the user who builds it.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
