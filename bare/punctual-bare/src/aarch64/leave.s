// Enters another program, which replaces this one.

    .section .text.leave, "ax"
    .global __punctual_bare_leave
// x0: the program; x1: its size in bytes, a multiple of 16; x2: its destination; x3: room for the
// code that moves it, above both programs; x4: the end of all used memory.
__punctual_bare_leave:
    msr     daifset, #0xf
    adr     x5, move_program
    adr     x6, move_program_end
    mov     x7, x3
1:  ldr     w8, [x5], #4
    str     w8, [x7], #4
    cmp     x5, x6
    b.lo    1b
    // Disable the MMU and the caches first and clean the caches afterwards, so that they stay
    // empty.
    dsb     sy
    mrs     x5, sctlr_el1
    bic     x5, x5, #1
    bic     x5, x5, #4
    bic     x5, x5, #(1 << 12)
    msr     sctlr_el1, x5
    isb
    mov     x5, x2
2:  dc      civac, x5
    add     x5, x5, #32                 // The minimum cache line size.
    cmp     x5, x4
    b.lo    2b
    dsb     sy
    ic      iallu
    tlbi    vmalle1
    dsb     sy
    isb
    br      x3
move_program:
    mov     x5, x2
3:  ldp     x6, x7, [x0], #16
    stp     x6, x7, [x5], #16
    subs    x1, x1, #16
    b.hi    3b
    dsb     sy
    ic      iallu
    dsb     sy
    isb
    br      x2
move_program_end:
