# SPDX-License-Identifier: Apache-2.0
# cmake -P: makes one self-contained archive of the client and everything that it uses, in which only the symbols
# that are marked AGBOX_API are global (docs/decisions/0055-cpp-sdk-is-one-object.md).
#
#   OUTPUT   the archive
#   CLIENT   the archive that has the marked symbols
#   ARCHIVES all others, separated by commas
#   LINKER, OBJCOPY, READELF, AR

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

execute_process(COMMAND ${READELF} --syms --wide ${CLIENT} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
# "GLOBAL DEFAULT", not undefined: what is not marked is HIDDEN, and templates of the standard library are WEAK.
string(REGEX MATCHALL "GLOBAL +DEFAULT +[0-9]+ [^\n]+" lines "${symbols}")
list(TRANSFORM lines REPLACE "^GLOBAL +DEFAULT +[0-9]+ +" "")
list(SORT lines)
list(REMOVE_DUPLICATES lines)
if(NOT lines)
  message(FATAL_ERROR "${CLIENT}: no symbol is marked AGBOX_API")
endif()
list(JOIN lines "\n" kept)
file(WRITE ${OUTPUT}.symbols "${kept}\n")

list(TRANSFORM lines PREPEND "--undefined=" OUTPUT_VARIABLE roots)
string(REPLACE "," ";" archives "${ARCHIVES}")
set(object ${OUTPUT}.dir/agbox.o)
file(REMOVE_RECURSE ${OUTPUT} ${OUTPUT}.dir)
file(MAKE_DIRECTORY ${OUTPUT}.dir)
# A local symbol must not be the signature of a group of sections, so there are no groups any more.
run(${LINKER} --relocatable --gc-sections --force-group-allocation ${roots} -o ${object}
    --start-group ${CLIENT} ${archives} --end-group)
run(${OBJCOPY} --keep-global-symbols=${OUTPUT}.symbols ${object})
run(${OBJCOPY} --strip-unneeded ${object})
run(${AR} Drcs ${OUTPUT} ${object})
file(REMOVE_RECURSE ${OUTPUT}.dir)
