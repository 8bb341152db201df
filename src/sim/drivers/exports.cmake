# cmake -DDRIVER=550 -DTABLE=libcuda.txt -DDECLARED=cuda_exports.txt -DOUT=exports.S -P exports.cmake Writes
# one weak stub for each name that the driver exports, which a real definition replaces if there is one, the
# driver's variables, and a sorted table of names and addresses. A stub passes its own name on, so that the
# log contains the name that the program called. Next to OUT it writes exports.map, which lists the names for
# the linker.
# Driver 0 has the names of all drivers and those that the headers declare.
file(STRINGS ${TABLE} rows REGEX "^[a-z]")
set(names "")
foreach(row IN LISTS rows)
  string(REGEX MATCH "^([A-Za-z0-9_]+) ([0-9]+)-([0-9]*) ?([0-9]*)$" matched "${row}")
  if(NOT matched)
    message(FATAL_ERROR "${TABLE}: '${row}' is not a row")
  endif()
  set(last "${CMAKE_MATCH_3}")
  if(last STREQUAL "")
    set(last ${DRIVER})
  endif()
  if(DRIVER EQUAL 0 OR (CMAKE_MATCH_2 LESS_EQUAL DRIVER AND DRIVER LESS_EQUAL last))
    list(APPEND names ${CMAKE_MATCH_1})
    set(bytes_of_${CMAKE_MATCH_1} ${CMAKE_MATCH_4})
  endif()
endforeach()
if(DRIVER EQUAL 0)
  file(STRINGS ${DECLARED} rows REGEX "^[a-z]")
  list(TRANSFORM rows REPLACE " .*" "")
  list(APPEND names ${rows})
  list(REMOVE_DUPLICATES names)
endif()
list(SORT names)
set(stubs "")
set(variables "")
set(table "")
set(texts "")
set(count 0)
foreach(name IN LISTS names)
  if(bytes_of_${name})
    string(APPEND variables ".globl ${name}\n.type ${name}, @object\n${name}: .zero ${bytes_of_${name}}\n.size ${name}, ${bytes_of_${name}}\n.balign 8\n")
    continue()
  endif()
  string(APPEND stubs ".weak ${name}\n.type ${name}, @function\n${name}:\n  lea .Ln${count}(%rip), %rdi\n  jmp carve_sim_unsupported\n.size ${name}, . - ${name}\n")
  string(APPEND table "  .quad .Ln${count}, ${name}\n")
  string(APPEND texts ".Ln${count}: .asciz \"${name}\"\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUT} ".text\n${stubs}
.bss
.balign 8
${variables}
.section .data.rel.ro, \"aw\"
.balign 8
.globl carve_sim_exports
.hidden carve_sim_exports
carve_sim_exports:
${table}
.section .rodata
.balign 8
.globl carve_sim_export_count
.hidden carve_sim_export_count
carve_sim_export_count: .quad ${count}
.globl carve_sim_driver
.hidden carve_sim_driver
carve_sim_driver: .long ${DRIVER}
${texts}
.section .note.GNU-stack, \"\", @progbits\n")
list(JOIN names ";\n" listed)
get_filename_component(folder ${OUT} DIRECTORY)
file(WRITE ${folder}/exports.map "{ global:\n${listed};\nlocal: *; };\n")
