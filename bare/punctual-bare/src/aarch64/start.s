// The first instructions of an image on an ARMv8-A core in 64-bit state.
//
// A Raspberry Pi's firmware enters it at EL2 on core 0 and keeps the other cores in a loop of the
// firmware. QEMU's boards enter it at EL1, EL2 or EL3, and some do so on every core. Caches and MMU
// are off. When `cores.rs` starts the other cores, they enter at `_start_other`: from the
// firmware's loop, or from the equivalent `park` of the board's `StartCores`.

    .section .text.start, "ax"
    .global _start
_start:
    b       first
    // The loader rejects an image without room at its first block: see `punctual-boot`.
    .ascii  "punctual"
    .word   __image_size
first:
    msr     daifset, #0xf
    mrs     x4, mpidr_el1
    and     x4, x4, #0xff
    cbz     x4, boot
    b       {park}

    .global _start_other
_start_other:
    msr     daifset, #0xf
    mrs     x4, mpidr_el1
    and     x4, x4, #0xff

boot:
    mrs     x0, CurrentEL
    lsr     x0, x0, #2
    cmp     x0, #2
    b.eq    at_el2
    b.lo    at_el1

    // From EL3: the lower levels are non-secure with 64 bits; HVC, SMC and the FPU are not trapped.
    mov     x0, #0x5b1
    msr     scr_el3, x0
    msr     cptr_el3, xzr
    mov     x0, #0x3c9                  // EL2 with its own stack pointer, D, A, I and F masked
    msr     spsr_el3, x0
    adr     x0, at_el2
    msr     elr_el3, x0
    eret

at_el2:
    // EL2 must not interfere afterwards: physical counter and timer for EL1, no offset of the
    // virtual counter, no traps.
    mov     x0, #3
    msr     cnthctl_el2, x0
    msr     cntvoff_el2, xzr
    mov     x0, #0x33ff                 // Bits that are one.
    msr     cptr_el2, x0
    msr     hstr_el2, xzr
    mrs     x0, midr_el1
    msr     vpidr_el2, x0
    mrs     x0, mpidr_el1
    msr     vmpidr_el2, x0
    ldr     x0, =__hcr                  // None, except in a test that injects an error.
    orr     x0, x0, #(1 << 31)          // EL1 has 64 bits.
    msr     hcr_el2, x0
    mov     x0, #0x3c5                  // EL1 with its own stack pointer, D, A, I and F masked
    msr     spsr_el2, x0
    adr     x0, at_el1
    msr     elr_el2, x0
    eret

at_el1:
    msr     spsel, #1
    ldr     x0, =0x30d00800             // SCTLR_EL1: bits that are one; everything else off
    msr     sctlr_el1, x0
    mov     x0, #(3 << 20)              // The FPU without traps.
    msr     cpacr_el1, x0
    ldr     x0, =vectors
    msr     vbar_el1, x0
    isb

    // The stacks of the core; see link.ld. Faults are reported on EL1's own stack; everything else,
    // interrupts included, uses the other stack pointer.
    ldr     x0, =__stacks_start
    ldr     x1, =__fault_stack_size
    ldr     x2, =__stack_size
    add     x3, x1, x2
    add     x3, x3, #0x2000
    madd    x0, x4, x3, x0
    add     x0, x0, #0x1000
    add     x0, x0, x1
    mov     sp, x0
    add     x0, x0, #0x1000
    add     x0, x0, x2
    msr     spsel, #0
    mov     sp, x0

    mov     x29, #0                     // The outermost frame.
    mov     x30, #0
    cbnz    x4, 3f

    ldr     x0, =__bss_start
    ldr     x1, =__bss_end
1:  cmp     x0, x1
    b.hs    2f
    stp     xzr, xzr, [x0], #16
    b       1b

2:  bl      __punctual_bare_start
3:  bl      __punctual_bare_start_other

    .ltorg
