# SPDX-License-Identifier: Apache-2.0
# cmake --install build/release [--prefix ...], with DESTDIR: programs, the systemd user unit, shell
# completions, man pages, documents and licence. Nothing here starts or enables anything. The C++ SDK is in
# sdk/cpp/cmake/Install.cmake.

include(GNUInstallDirs)

# What is written while it is installed. Several installations of one build may run at the same time.
install(CODE "
  string(RANDOM LENGTH 12 id)
  set(AGBOX_WRITTEN \"${CMAKE_BINARY_DIR}/installation-\${id}\")")

if(TARGET agboxd)
  # Not for everyone: it gets a capability. Its group is set after the installation, see README.md.
  install(TARGETS agboxd RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
          PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE)
  # The unit contains the program's installed path, so it is written at install time, when the prefix is
  # known (cmake --install --prefix).
  if(EXISTS ${CMAKE_SOURCE_DIR}/packaging/agboxd.service.in)
    install(CODE "
      set(CMAKE_INSTALL_FULL_BINDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
      configure_file(\"${CMAKE_SOURCE_DIR}/packaging/agboxd.service.in\" \"\${AGBOX_WRITTEN}/agboxd.service\" @ONLY)
      file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/systemd/user\" TYPE FILE
           FILES \"\${AGBOX_WRITTEN}/agboxd.service\")")
  endif()
  install(FILES packaging/agboxd.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()

if(TARGET agbox-guest)
  install(TARGETS agbox-guest RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/agents-sandbox)
endif()

if(TARGET agbox)
  install(TARGETS agbox RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # The program writes its own manual and completions; one that cannot (yet) is installed without them.
  install(CODE "
    execute_process(COMMAND \"$<TARGET_FILE:agbox>\" manual OUTPUT_VARIABLE text
                    ERROR_VARIABLE complaint RESULT_VARIABLE code)
    if(code EQUAL 0)
      file(WRITE \"\${AGBOX_WRITTEN}/agbox.1\" \"\${text}\")
      file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man1\" TYPE FILE
           FILES \"\${AGBOX_WRITTEN}/agbox.1\")
    else()
      message(STATUS \"No man page: agbox manual ended with \${code}\")
    endif()")
  install(CODE "
    set(directory \"\${AGBOX_WRITTEN}/completions\")
    foreach(shell_and_file bash:bash/agbox zsh:zsh/_agbox fish:fish/agbox.fish)
      string(REPLACE \":\" \";\" pair \"\${shell_and_file}\")
      list(GET pair 0 shell)
      list(GET pair 1 file)
      execute_process(COMMAND \"$<TARGET_FILE:agbox>\" completion \${shell}
                      OUTPUT_VARIABLE text ERROR_VARIABLE complaint RESULT_VARIABLE code)
      if(NOT code EQUAL 0)
        message(STATUS \"No \${shell} completion: agbox completion \${shell} ended with \${code}\")
        continue()
      endif()
      file(WRITE \"\${directory}/\${file}\" \"\${text}\")
    endforeach()
    set(share \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")
    foreach(place bash:bash-completion/completions zsh:zsh/site-functions fish:fish/vendor_completions.d)
      string(REPLACE \":\" \";\" pair \"\${place}\")
      list(GET pair 0 shell)
      list(GET pair 1 target)
      file(GLOB files \"\${directory}/\${shell}/*\")
      if(files)
        file(INSTALL DESTINATION \"\${share}/\${target}\" TYPE FILE FILES \${files})
      endif()
    endforeach()")
endif()

# For editors: completes and checks the files of sandbox create --yaml-file.
install(FILES docs/sandbox.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/agents-sandbox)

# Compiled into agbox as well; here to be read and copied.
install(DIRECTORY share/agents DESTINATION ${CMAKE_INSTALL_DATADIR}/agents-sandbox)

# Laid out as in the source tree, so that the links between them work.
install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES bench/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")

install(CODE "file(REMOVE_RECURSE \"\${AGBOX_WRITTEN}\")")
