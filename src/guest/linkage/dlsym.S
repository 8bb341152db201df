# dlsym, as the preload exports it. glibc's dlsym reads its return address to find the caller of RTLD_NEXT and
# RTLD_DEFAULT. So lookups that the library does not answer jump to the real dlsym instead of calling it, and
# the return address stays the caller's. (g++ 12 has no musttail.) Adds about 10 ns to a lookup.
    .text
    .globl dlsym
    .type dlsym, @function
    .hidden carve_answer_dlsym
    .hidden carve_real_dlsym
dlsym:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call carve_answer_dlsym      # {rax: the answer, rdx: whether there is one}
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testl %edx, %edx
    jne 1f
    movq carve_real_dlsym(%rip), %rax
    jmp *%rax
1:  ret
    .cfi_endproc
    .size dlsym, . - dlsym
    .section .note.GNU-stack, "", @progbits
