# cmake -DNAMES=exports.txt -DOUT=exports.S -DPREFIX=carve_sim -P exports.cmake
# Writes one weak stub per exported name, which a real definition replaces if there is one, and a sorted table of names
# and addresses. A stub passes its own name on, so that the log names the call of the program.
file(STRINGS ${NAMES} rows REGEX "^[a-z]")
set(stubs "")
set(table "")
set(texts "")
set(count 0)
foreach(row IN LISTS rows)
  string(REGEX REPLACE " .*" "" name "${row}")
  string(APPEND stubs ".weak ${name}\n.type ${name}, @function\n${name}:\n  lea .Ln${count}(%rip), %rdi\n  jmp ${PREFIX}_unsupported\n.size ${name}, . - ${name}\n")
  string(APPEND table "  .quad .Ln${count}, ${name}\n")
  string(APPEND texts ".Ln${count}: .asciz \"${name}\"\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUT} ".text\n${stubs}
.section .data.rel.ro, \"aw\"
.balign 8
.globl ${PREFIX}_exports
.hidden ${PREFIX}_exports
${PREFIX}_exports:
${table}
.section .rodata
.balign 8
.globl ${PREFIX}_export_count
.hidden ${PREFIX}_export_count
${PREFIX}_export_count: .quad ${count}
${texts}
.section .note.GNU-stack, \"\", @progbits\n")
