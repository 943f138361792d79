// Enters another program, which replaces this one.

    .syntax unified
    .arch armv7-a

    .section .text.leave, "ax"
    .arm
    .global __punctual_bare_leave
// r0: the program; r1: its size in bytes, a multiple of 16; r2: its destination; r3: room for the
// code that moves it, above both programs; on the stack: the end of all used memory.
__punctual_bare_leave:
    cpsid   aif
    ldr     r4, [sp]
    adr     r5, move_program
    adr     r6, move_program_end
    mov     r7, r3
1:  ldr     r8, [r5], #4
    str     r8, [r7], #4
    cmp     r5, r6
    blo     1b
    // Disable the MMU and the caches first and clean the caches afterwards, so that they stay
    // empty.
    dsb
    mrc     p15, 0, r5, c1, c0, 0
    bic     r5, r5, #0x5
    bic     r5, r5, #0x1800
    mcr     p15, 0, r5, c1, c0, 0
    isb
    mov     r5, r2
2:  mcr     p15, 0, r5, c7, c14, 1      // DCCIMVAC
    add     r5, r5, #32                 // The minimum cache line size.
    cmp     r5, r4
    blo     2b
    dsb
    mov     r5, #0
    mcr     p15, 0, r5, c7, c5, 0       // ICIALLU
    mcr     p15, 0, r5, c7, c5, 6       // BPIALL
    mcr     p15, 0, r5, c8, c7, 0       // TLBIALL
    dsb
    isb
    bx      r3
move_program:
    mov     r5, r2
3:  ldr     r6, [r0], #4
    str     r6, [r5], #4
    subs    r1, r1, #4
    bhi     3b
    dsb
    mov     r6, #0
    mcr     p15, 0, r6, c7, c5, 0
    mcr     p15, 0, r6, c7, c5, 6
    dsb
    isb
    bx      r2
move_program_end:
