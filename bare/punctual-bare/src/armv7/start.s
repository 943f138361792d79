// The first instructions of an image on an ARMv7-A core with virtualization extensions and a VFP,
// such as a Cortex-A7.
//
// A Raspberry Pi's firmware enters it in HYP mode on core 0 and keeps the other cores in a loop of
// the firmware. QEMU's boards enter it in SVC or HYP mode, and some do so on every core. Caches and
// MMU are off. When `cores.rs` starts the other cores, they enter at `_start_other`: from the
// firmware's loop, or from the equivalent `park` of the board's `StartCores`.

    .syntax unified
    .arch armv7-a
    .arch_extension virt
    .fpu vfpv3-d16

    .section .text.start, "ax"
    .arm
    .global _start
_start:
    b       first
    // The loader rejects an image without room at its first block: see `punctual-boot`.
    .ascii  "punctual"
    .word   __image_size
first:
    cpsid   aif
    mrc     p15, 0, r4, c0, c0, 5       // MPIDR
    ands    r4, r4, #3
    bne     {park}
    b       boot

    .global _start_other
_start_other:
    cpsid   aif
    mrc     p15, 0, r4, c0, c0, 5
    and     r4, r4, #3

boot:
    mrs     r0, cpsr
    and     r1, r0, #0x1f
    cmp     r1, #0x1a
    bne     in_svc_mode

    // From HYP mode, which must not interfere afterwards: physical counter and timer for all modes,
    // no offset of the virtual counter, no traps.
    mov     r1, #3
    mcr     p15, 4, r1, c14, c1, 0      // CNTHCTL
    mov     r1, #0
    mcrr    p15, 4, r1, r1, c14         // CNTVOFF
    mcr     p15, 4, r1, c1, c1, 3       // HSTR
    ldr     r1, =__hcr                  // None, except in a test that injects an error.
    mcr     p15, 4, r1, c1, c1, 0       // HCR
    ldr     r1, =0x33ff
    mcr     p15, 4, r1, c1, c1, 2       // HCPTR: bits that are one
    mrc     p15, 0, r1, c0, c0, 0
    mcr     p15, 4, r1, c0, c0, 0       // VPIDR = MIDR
    mrc     p15, 0, r1, c0, c0, 5
    mcr     p15, 4, r1, c0, c0, 5       // VMPIDR = MPIDR
    bic     r0, r0, #0x1f
    orr     r0, r0, #0x1d0              // A, I and F masked
    orr     r0, r0, #0x3
    msr     spsr_cxsf, r0
    adr     r1, in_svc_mode
    msr     elr_hyp, r1
    eret

in_svc_mode:
    cps     #0x13
    mrc     p15, 0, r0, c1, c0, 0       // SCTLR: MMU, alignment checks, caches off; vectors by VBAR, in ARM state
    bic     r0, r0, #0x7
    bic     r0, r0, #0x3800
    bic     r0, r0, #(1 << 30)
    mcr     p15, 0, r0, c1, c0, 0
    ldr     r0, =vectors
    mcr     p15, 0, r0, c12, c0, 0      // VBAR

    mrc     p15, 0, r0, c1, c0, 2       // CPACR: the FPU for all modes
    orr     r0, r0, #(0xf << 20)
    mcr     p15, 0, r0, c1, c0, 2
    isb
    mov     r0, #(1 << 30)
    vmsr    fpexc, r0

    // The stacks of the core; see link.ld. Faults use the lower one, regardless of their mode.
    ldr     r0, =__stacks_start
    ldr     r1, =__fault_stack_size
    ldr     r2, =__stack_size
    add     r3, r1, r2
    add     r3, r3, #0x2000
    mla     r0, r4, r3, r0
    add     r0, r0, #0x1000
    add     r0, r0, r1
    cps     #0x17                       // ABT
    mov     sp, r0
    cps     #0x1b                       // UND
    mov     sp, r0
    cps     #0x11                       // FIQ
    mov     sp, r0
    cps     #0x12                       // IRQ
    mov     sp, r0
    cps     #0x13                       // SVC
    ldr     r1, =__stack_size
    add     r0, r0, #0x1000
    add     sp, r0, r1

    mov     r11, #0                     // The outermost frame.
    cmp     r4, #0
    bne     2f

    ldr     r0, =__bss_start
    ldr     r1, =__bss_end
    mov     r2, #0
1:  cmp     r0, r1
    strlo   r2, [r0], #4
    blo     1b

    bl      __punctual_bare_start
2:  bl      __punctual_bare_start_other

    .ltorg
