// The exception vectors. *Arm Architecture Reference Manual for A-profile architecture*, D1.4.1.

// Reports a fault, taken on the stack pointer of EL1; does not return. Saves the registers in the
// layout of `Registers`.
    .macro  fault kind
    .balign 128
    sub     sp, sp, #(36 * 8)
    stp     x0, x1, [sp, #(0 * 8)]
    mov     x0, #\kind
    b       report
    .endm

// Takes an interrupt entirely in place, which saves a branch. The code is one instruction shorter
// than the vector.
//
// Interrupts are handled on the stack of the interrupted code, so that the handler may allow
// further ones. They save the registers that a function may change: x0-x18, x30, and those of the
// FPU, q0-q31 with its control and status. A function preserves only the lower halves of q8-q15.
    .macro  interrupted
    .balign 128
    msr     spsel, #0
    sub     sp, sp, #(24 * 8 + 32 * 16)
    stp     x0, x1, [sp, #(4 * 8)]
    mrs     x0, elr_el1
    mrs     x1, spsr_el1
    stp     x29, x0, [sp]               // A frame record, for backtraces.
    mov     x29, sp
    stp     x1, x30, [sp, #(2 * 8)]
    stp     x2, x3, [sp, #(6 * 8)]
    stp     x4, x5, [sp, #(8 * 8)]
    stp     x6, x7, [sp, #(10 * 8)]
    stp     x8, x9, [sp, #(12 * 8)]
    stp     x10, x11, [sp, #(14 * 8)]
    stp     x12, x13, [sp, #(16 * 8)]
    stp     x14, x15, [sp, #(18 * 8)]
    stp     x16, x17, [sp, #(20 * 8)]
    mrs     x0, fpcr
    mrs     x1, fpsr
    bfi     x1, x0, #32, #32
    stp     x18, x1, [sp, #(22 * 8)]
    add     x0, sp, #(24 * 8)
    st1     {v0.2d, v1.2d, v2.2d, v3.2d}, [x0], #64
    st1     {v4.2d, v5.2d, v6.2d, v7.2d}, [x0], #64
    st1     {v8.2d, v9.2d, v10.2d, v11.2d}, [x0], #64
    st1     {v12.2d, v13.2d, v14.2d, v15.2d}, [x0], #64
    st1     {v16.2d, v17.2d, v18.2d, v19.2d}, [x0], #64
    st1     {v20.2d, v21.2d, v22.2d, v23.2d}, [x0], #64
    st1     {v24.2d, v25.2d, v26.2d, v27.2d}, [x0], #64
    st1     {v28.2d, v29.2d, v30.2d, v31.2d}, [x0], #64
    bl      __punctual_bare_interrupt
    b       interrupt_end
    .endm

    .section .text.vectors, "ax"
    .balign 2048
    .global vectors
vectors:
    // From the program, which uses the other stack pointer.
    fault   0
    interrupted
    fault   2
    fault   3
    // From this level with the stack pointer of EL1: while a fault is being reported.
    fault   4
    fault   4
    fault   4
    fault   4
    // From lower levels, where nothing runs.
    .rept   8
    fault   5
    .endr

    .balign 128
report:
    stp     x2, x3, [sp, #(2 * 8)]
    stp     x4, x5, [sp, #(4 * 8)]
    stp     x6, x7, [sp, #(6 * 8)]
    stp     x8, x9, [sp, #(8 * 8)]
    stp     x10, x11, [sp, #(10 * 8)]
    stp     x12, x13, [sp, #(12 * 8)]
    stp     x14, x15, [sp, #(14 * 8)]
    stp     x16, x17, [sp, #(16 * 8)]
    stp     x18, x19, [sp, #(18 * 8)]
    stp     x20, x21, [sp, #(20 * 8)]
    stp     x22, x23, [sp, #(22 * 8)]
    stp     x24, x25, [sp, #(24 * 8)]
    stp     x26, x27, [sp, #(26 * 8)]
    stp     x28, x29, [sp, #(28 * 8)]
    mrs     x1, sp_el0
    stp     x30, x1, [sp, #(30 * 8)]
    mrs     x1, elr_el1
    mrs     x2, spsr_el1
    stp     x1, x2, [sp, #(32 * 8)]
    str     x0, [sp, #(34 * 8)]
    mov     x0, sp
    bl      __punctual_bare_fault

// Returns from an interrupt that `interrupted` has taken.
interrupt_end:
    add     x0, sp, #(24 * 8)
    ld1     {v0.2d, v1.2d, v2.2d, v3.2d}, [x0], #64
    ld1     {v4.2d, v5.2d, v6.2d, v7.2d}, [x0], #64
    ld1     {v8.2d, v9.2d, v10.2d, v11.2d}, [x0], #64
    ld1     {v12.2d, v13.2d, v14.2d, v15.2d}, [x0], #64
    ld1     {v16.2d, v17.2d, v18.2d, v19.2d}, [x0], #64
    ld1     {v20.2d, v21.2d, v22.2d, v23.2d}, [x0], #64
    ld1     {v24.2d, v25.2d, v26.2d, v27.2d}, [x0], #64
    ld1     {v28.2d, v29.2d, v30.2d, v31.2d}, [x0], #64
    ldp     x18, x1, [sp, #(22 * 8)]
    msr     fpsr, x1
    lsr     x1, x1, #32
    msr     fpcr, x1
    ldp     x16, x17, [sp, #(20 * 8)]
    ldp     x14, x15, [sp, #(18 * 8)]
    ldp     x12, x13, [sp, #(16 * 8)]
    ldp     x10, x11, [sp, #(14 * 8)]
    ldp     x8, x9, [sp, #(12 * 8)]
    ldp     x6, x7, [sp, #(10 * 8)]
    ldp     x4, x5, [sp, #(8 * 8)]
    ldp     x2, x3, [sp, #(6 * 8)]
    // An exception from here on would lose state, so the handler must have masked interrupts.
    ldp     x1, x30, [sp, #(2 * 8)]
    ldp     x29, x0, [sp]
    msr     elr_el1, x0
    msr     spsr_el1, x1
    ldp     x0, x1, [sp, #(4 * 8)]
    add     sp, sp, #(24 * 8 + 32 * 16)
    eret
