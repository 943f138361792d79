// The exception vectors. *ARM Architecture Reference Manual, ARMv7-A and ARMv7-R edition*, B1.8.

    .syntax unified
    .arch armv7-a
    .fpu vfpv3

    .section .text.vectors, "ax"
    .arm
    .balign 32
    .global vectors
vectors:
    b       .                           // Reset, which does not use this vector.
    b       undefined
    b       supervisor_call
    b       prefetch_abort
    b       data_abort
    b       .                           // HYP mode only.
    b       interrupt
    b       fast_interrupt

// Saves the registers in the layout of `Registers`, on the stack of the mode, and does not return.
// The fault has interrupted SVC mode, unless another fault is being reported.
    .macro  report kind, return_offset
    sub     lr, lr, #\return_offset
    sub     sp, sp, #(18 * 4)
    stm     sp, {r0-r12}
    str     lr, [sp, #(15 * 4)]
    mrs     r0, spsr
    str     r0, [sp, #(16 * 4)]
    mov     r0, #\kind
    str     r0, [sp, #(17 * 4)]
    mov     r0, sp
    mrs     r1, cpsr
    cps     #0x13
    mov     r2, sp
    mov     r3, lr
    msr     cpsr_c, r1
    strd    r2, r3, [r0, #(13 * 4)]
    bic     sp, sp, #7
    bl      __punctual_bare_fault
    .endm

undefined:
    report  0, 4
supervisor_call:
    report  1, 4
prefetch_abort:
    report  2, 4
data_abort:
    report  3, 8
fast_interrupt:
    report  4, 4

// Interrupts are handled in SVC mode, on the stack of the interrupted code, so that the handler may
// allow further ones. They save the registers that a function may change: r0-r3, r12, lr, and those
// of the FPU, d0-d7 and d16-d31. The compiler uses d16-d31 on this target regardless of its
// features.
interrupt:
    sub     lr, lr, #4
    srsdb   sp!, #0x13
    cps     #0x13
    push    {r11}                     // With the return address above it, a frame record for backtraces.
    mov     r11, sp
    push    {r0-r3, r12, lr}
    and     r0, sp, #4                  // Calls require a stack aligned to 8 bytes.
    sub     sp, sp, r0
    vmrs    r1, fpscr
    push    {r0, r1}
    vpush   {d0-d7}
    vpush   {d16-d31}
    bl      __punctual_bare_interrupt
    vpop    {d16-d31}
    vpop    {d0-d7}
    pop     {r0, r1}
    vmsr    fpscr, r1
    add     sp, sp, r0
    pop     {r0-r3, r12, lr}
    pop     {r11}
    clrex                               // The interrupted code may be between ldrex and strex.
    rfeia   sp!
